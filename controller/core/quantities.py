"""What numbers and names in files may be."""

from typing import Annotated

from msgspec import Meta

# So that sums and products of quantities stay finite.
MOST = 1e15
Name = Annotated[str, Meta(min_length=1)]
Quantity = Annotated[float, Meta(ge=0, le=MOST)]
Count = Annotated[int, Meta(ge=1, le=int(MOST))]
