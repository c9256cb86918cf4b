"""What becomes of items."""

from scrapy.exceptions import DropItem


class Upper:
    """Writes titles large; drops items without one."""

    def process_item(self, item):
        """Change an item, or drop it."""
        if item.get("title") is None:
            raise DropItem("no title")
        item["title"] = item["title"].upper()
        return item
