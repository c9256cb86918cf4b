"""What happens to every request and every item of the project."""


class Badge:
    """Says who asks, in a header."""

    def process_request(self, request):
        request.headers.setdefault("X-Club", "member")


class Stamp:
    """Notes on each item where it came from."""

    def process_spider_output(self, response, result):
        for each in result:
            if isinstance(each, dict):
                each["from"] = response.url
            yield each

    async def process_spider_output_async(self, response, result):
        async for each in result:
            if isinstance(each, dict):
                each["from"] = response.url
            yield each
