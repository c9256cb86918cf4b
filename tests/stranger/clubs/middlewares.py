"""What happens to every request and every item of the project."""

from scrapy.exceptions import IgnoreRequest


class Badge:
    """Says who asks, in a header; leaves alone who would not answer anyway."""

    def process_request(self, request):
        """Change a request, or refuse it."""
        if "//127.0.0.5:" in request.url:
            raise IgnoreRequest("they never answer")
        request.headers.setdefault("X-Club", "member")


class Stamp:
    """Notes on each item where it came from."""

    def process_spider_output(self, response, result):
        """Change what a callback yields."""
        for each in result:
            if isinstance(each, dict):
                each["from"] = response.url
            yield each

    async def process_spider_output_async(self, response, result):
        """Do the same where it yields asynchronously."""
        async for each in result:
            if isinstance(each, dict):
                each["from"] = response.url
            yield each
