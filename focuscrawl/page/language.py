"""Which language a page is in: as its words tell, or else as it says of itself."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from focuscrawl.errors import UserError
from focuscrawl.foundation.extras import needs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from focuscrawl.page.view import PageView

_FEW = 20  # words, which tell little
_MOST = 500  # words that are looked at; a millisecond
_SURE = 0.5  # of what the words tell; less than that is names and numbers
_NO_LANGUAGE = "zxx"
_SHORT = 2  # letters of the codes of ISO 639-1; names and lists look like one of the others
#: what one cannot tell by looking, or what is written the same
_SAME = {"nb": "no", "nn": "no", "yue": "zh", "wuu": "zh", "cmn": "zh", "iw": "he", "in": "id"}


class Languages:
    """Some languages, and which pages are in another one.

    Parameters
    ----------
    codes : of ISO 639-1; none: all languages

    Raises
    ------
    UserError
        A code is that of no language that can be told, or what tells them is not installed.
    """

    def __init__(self, codes: Iterable[str] = ()) -> None:
        self._codes = frozenset(_SAME.get(code, code) for code in codes)
        self._detector = _detector() if self._codes else None
        known = set() if self._detector is None else set(self._detector.labels)
        for code in sorted(self._codes - known):
            raise UserError(
                f"languages: {code} is none that can be told; codes are those of ISO 639-1, "
                "as in en, de, fr, ja"
            )

    def other(self, view: PageView) -> str | None:
        """Return the language of a page that is in none of these; None: it is, or nobody knows.

        Its words tell where there are enough of them; templates say of pages in all languages
        that they are in English.
        """
        if self._detector is None:
            return None
        found = self._by_words(view) or primary(view.language)
        return None if not found or found in self._codes else found

    def _by_words(self, view: PageView) -> str | None:
        words = view.tokens[:_MOST]
        if self._detector is None or len(words) < _FEW:
            return None
        language, sure = self._detector.classify(" ".join(words))
        return None if sure < _SURE or language == _NO_LANGUAGE else primary(language)


def tell(text: str, said: str = "") -> tuple[str, float]:
    """Return the language of a text, and how probable that is by its words.

    Parameters
    ----------
    said : tag of the language that its page names, which is taken where words tell too little

    Returns
    -------
    Code of ISO 639-1 and a probability; an empty code: nobody knows; 0: the page says so
    """
    words = text.split(None, _MOST)[:_MOST]
    if len(words) >= _FEW:
        language, sure = _detector().classify(" ".join(words))
        if sure >= _SURE and language != _NO_LANGUAGE:
            return primary(language), float(sure)
    return primary(said), 0.0


def primary(tag: str) -> str:
    """Return the language that a tag such as en-GB begins with (RFC 5646); empty: none."""
    code = tag.strip().lower().replace("_", "-").partition("-")[0]
    return _SAME.get(code, code) if 2 <= len(code) <= 3 and code.isalpha() else ""


@cache
def _detector() -> Any:
    with needs("languages", "telling the language of pages"):
        from py3langid.langid import MODEL_FILE, LanguageIdentifier  # noqa: PLC0415
    detector = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    short = [code for code in detector.labels if len(code) == _SHORT]
    detector.set_languages([*short, _NO_LANGUAGE])
    return detector
