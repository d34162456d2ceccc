"""The version of a database: what it is, whether this code can use it, and how it gets there.

Source of truth: Alembic's table `alembic_version` and the folder `migrations/`. A fresh file is made as the newest migration
would leave it; one with history is only changed when the user says so. Other programs use Alembic too, and number their
revisions alike: a database is Assay's only if it has the table that marks it so, or the tables that every version before the
mark had.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias, assert_never

from sqlalchemy import Connection, Engine, inspect, text

from scanner.errors import StoreError, UsageError
from scanner.store.address import Address
from scanner.store.engine import writing_history
from scanner.store.tables import MARK, METADATA

HEAD = "0009"
"""The newest migration; a test compares it with the folder."""

_VERSIONS = "alembic_version"
_MARKED_SINCE = "0009"
_UNMARKED = frozenset(
    {"checks", "clusters", "coverage", "findings", "gaps", "policies", "scans", "tallies", "verdicts"}
)
"""What every version before the mark has."""

State: TypeAlias = Literal["fresh", "current", "older", "newer", "foreign"]


def migrations() -> Path:
    """The folder of the migrations: inside the installed package, or beside it in a checkout."""
    package = Path(__file__).parents[1]
    installed = package / "_data" / "migrations"
    return installed if installed.is_dir() else package.parent / "migrations"


def prepare(engine: Engine, address: Address) -> None:
    """Make a fresh database usable. Raises StoreError for one that this code cannot use."""
    with engine.connect() as connection:
        state = _state(connection)
    match state:
        case "current":
            return
        case "fresh":
            migrate(engine, address)
        case "older":
            raise _older(address)
        case "newer":
            raise _newer(address)
        case "foreign":
            raise _foreign(address)


def check(engine: Engine, address: Address) -> None:
    """Refuse a database that cannot be read as it is.

    Raises UsageError for one that holds nothing yet, and StoreError for one that cannot be read.
    """
    with engine.connect() as connection:
        state = _state(connection)
    match state:
        case "current":
            return
        case "fresh":
            raise UsageError(f"The database {address.shown} holds no scan yet: `assay scan` records one.")
        case "older":
            raise _older(address)
        case "newer":
            raise _newer(address)
        case "foreign":
            raise _foreign(address)
        case _ as never:
            assert_never(never)


def migrate(engine: Engine, address: Address) -> bool:
    """Bring the database to the head, whatever it was; False when it was there already. Raises StoreError."""
    with writing_history(engine) as connection:
        match _state(connection):
            case "current":
                return False
            case "newer":
                raise _newer(address)
            case "foreign":
                raise _foreign(address)
            case "fresh" if connection.dialect.name == "sqlite":
                _create(connection)
                return True
            case "fresh" | "older":
                _run(connection)
                return True


def _state(connection: Connection) -> State:
    tables = set(inspect(connection).get_table_names())
    if not tables:
        return "fresh"
    versions = _versions(connection) if _VERSIONS in tables else []
    known = _known()
    if MARK.name not in tables and not (
        _UNMARKED <= tables and set(versions) <= {it for it in known if it < _MARKED_SINCE}
    ):
        return "foreign"
    match versions:
        case [version] if version == HEAD:
            return "current"
        case [version] if version in known:
            return "older"
        case [_]:
            return "newer"
        case _:
            return "foreign"


def _versions(connection: Connection) -> list[str]:
    return [str(version) for version in connection.execute(text(f"SELECT version_num FROM {_VERSIONS}")).scalars()]  # noqa: S608 - a constant


def _known() -> frozenset[str]:
    return frozenset(path.name.partition("_")[0] for path in (migrations() / "versions").glob("[0-9]*.py"))


def _create(connection: Connection) -> None:
    """Make what the last migration leaves, at once; a test compares the two.

    The tables do not say all of what PostgreSQL is told, and a database there is not made for every run.
    """
    METADATA.create_all(connection)
    key = "CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)"
    connection.execute(text(f"CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL, {key})"))
    connection.execute(text("INSERT INTO alembic_version VALUES (:head)"), {"head": HEAD})


def _run(connection: Connection) -> None:
    # Alembic takes as long to import as SQLAlchemy itself, and most runs do not need it.
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(migrations()).replace("%", "%%"))
    command.upgrade(config, "head")


def _older(address: Address) -> StoreError:
    return StoreError(
        f"The database {address.shown} was made by an older version of Assay. "
        "Make a backup of it, then run: assay db upgrade."
    )


def _newer(address: Address) -> StoreError:
    return StoreError(
        f"The database {address.shown} was made by a newer version of Assay, which this one cannot read. "
        "Install that version, or name another database with --db; `assay db upgrade` cannot go back."
    )


def _foreign(address: Address) -> StoreError:
    return StoreError(
        f"The database {address.shown} holds tables that are not Assay's, and Assay leaves it alone. "
        "Name another one with --db: only an empty database is set up by itself, and `assay db upgrade` is for Assay's own."
    )
