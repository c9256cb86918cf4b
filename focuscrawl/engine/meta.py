"""Keys of ``request.meta`` that focuscrawl sets."""

#: number of the URL in the crawl; only requests that come out of the frontier have it
URL_ID = "focuscrawl_url"
#: the `Visit`, once the answer has been judged
VISIT = "focuscrawl_visit"
#: on requests for a page that asks not to be indexed, if that is obeyed
NOINDEX = "focuscrawl_noindex"
#: on requests for a page that was fetched before, for the links that are new on it
AGAIN = "focuscrawl_again"
#: bytes received so far; only requests for a robots.txt have it
ROBOTS = "focuscrawl_robots"
#: on requests that failed before an answer came
UNANSWERED = "focuscrawl_unanswered"
#: on requests that a project's own spider yielded: which redirects it wants to see itself
OWN = "focuscrawl_own"
NO_REDIRECT, ANSWERS, ALL_REDIRECTS = "none", "answers", "all"  #: answers: not pages that refresh
#: on requests that stand for links of a page that its callback did not ask for
FOLLOWED = "focuscrawl_followed"
