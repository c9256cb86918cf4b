"""The critic: judges whether a page is on the topic [F99 section 3.1, A02 section 2.3].

This package contains the protocol of critics, the critics of focuscrawl, their training, their
checks and their files. The packages `strategies` and `apprentice`, not the critic, decide which
links to follow.
"""

from focuscrawl.critic.critic_files import load_critic
from focuscrawl.critic.protocol import Critic, Judgement

__all__ = ["Critic", "Judgement", "load_critic"]
