"""The critic: judges whether a page is on the topic [F99 section 3.1, A02 section 2.3].

Here: the protocol, the critics that come with the program, their training, checking and files.
Not here: which links to follow; that is the strategies' and the apprentice's.
"""

from focuscrawl.critic.critic_files import load_critic
from focuscrawl.critic.protocol import Critic, Judgement

__all__ = ["Critic", "Judgement", "load_critic"]
