"""What documents of the API have in common."""

from __future__ import annotations

from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

T = TypeVar("T")

Rate = float | None
Percent = float | None
Time = float | None
Dpid = int | None
PortNo = int | None


Hexadecimal = Annotated[
    str | None, Field(description="The datapath id as 16 hexadecimal digits, for those who read numbers to 53 bits.")
]


class Described(BaseModel):
    """A document; the controller may add fields. The description calls `SwitchModel` what it is about: ``Switch``."""

    model_config = ConfigDict(extra="allow")

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.__name__ = cls.__qualname__ = cls.__name__.removesuffix("Model")


class FurtherTreeModel(Described):
    """A further tree of a group; `senders` are those whose packets take it."""

    number: int
    links: list[list[int]]
    senders: int
    flow_parts: int | None = Field(
        default=None, description="Of senders whose flows are divided: parts that take it."
    )
    rate_bps: Rate = None
    state: Literal["binding", "bound", "leaving"]
    reason: str | None = Field(default=None, description="Why the group has it.")


class WrongTokensModel(Described):
    """Wrong tokens, by who sent them."""

    clients: dict[str, int] = Field(description="How many came from the clients with most, by address or /64 subnet.")
    clients_forgotten: int = Field(
        ge=0, description="Clients of which nothing is known any more: too many others came."
    )


class ReceiverVlanModel(Described):
    """A VLAN whose receivers get a group of another one; `ports` says at how many ports."""

    vlan: int | None = None
    vlan_name: str | None = None
    ports: int


class Identified(Described):
    """A document with its id."""

    id: str


class Page(BaseModel, Generic[T]):
    """A page of a list; `total` counts what was found before it was cut to the page."""

    items: list[T]
    total: int = Field(ge=0)
