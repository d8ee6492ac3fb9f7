"""Numbers as people read them."""


def readable(value: float, form: str = ".4g") -> str:
    """Write a number with thousands where `form` alone gives a power of ten: 24,400."""
    return f"{value:{form}}" if abs(value) < 999.5 else f"{value:{form.partition('.')[0]},.0f}"
