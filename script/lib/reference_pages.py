"""Pages of the site that are made from the code when it is built: a hook of mkdocs (mkdocs.yml)."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from apps.cli.examples import EXAMPLES
from apps.cli.help_text import EXIT_STATUS, commands_of
from apps.cli.main import build_parser
from apps.dashboard.api import build_api
from apps.dashboard.board import Board
from apps.dashboard.feed import act
from apps.dashboard.limits import ServerLimits
from apps.dashboard.static_files import StaticFiles
from apps.dashboard.streams import Streams
from apps.dashboard.tally import RequestTally
from apps.dashboard.workflow_runs import WorkflowFolder, WorkflowRuns
from apps.exporters import controller_metrics
from apps.exporters.metrics import FAMILIES
from controller.config.json_schema import policy_schema, schema_text

ROOT = Path(__file__).parents[2]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages to those of docs/."""
    api = api_description()
    pages = {
        "reference/api.md": api_page(api),
        "reference/openapi.json": json.dumps(api, indent=2) + "\n",
        "reference/cli.md": command_page(),
        "reference/policy-schema.md": schema_page(),
        "reference/policy.schema.json": schema_text(),
        "reference/metrics.md": metrics_page(),
        "reference/changes.md": (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").replace("](docs/", "](../"),
    }
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    return files


def table(titles: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table."""
    titles = list(titles)
    lines = [titles, ["---"] * len(titles), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def command_page() -> str:
    """Return the page of the `vsrt` command, from its argument parsers."""
    parts = [
        "# Command line\n",
        f"Every command takes `--json`, which prints one JSON document and nothing else. {EXIT_STATUS}\n",
    ]
    for parser in commands_of(build_parser()):
        parts += [f"{'#' * (1 + len(parser.prog.split()))} {parser.prog}\n", f"{parser.description}\n"]
        parts.append(f"```text\n{parser.format_usage().strip()}\n```\n")
        rows = [row for action in parser._actions if (row := argument_row(parser, action))]
        if rows:
            parts.append(table(("argument", "meaning"), rows))
        examples = EXAMPLES.get(parser.prog, ())
        if examples:
            lines = (f"{line}  # {what}" if what else line for line, what in examples)
            parts.append("```sh\n" + "\n".join(lines) + "\n```\n")
    return "\n".join(parts)


def argument_row(parser: argparse.ArgumentParser, action: argparse.Action) -> tuple[str, str] | None:
    """Return how an argument is written and what it means; None for those that every command has."""
    if action.dest in ("help", "json") or action.help == argparse.SUPPRESS:
        return None
    formatter = parser._get_formatter()
    if isinstance(action, argparse._SubParsersAction):
        return None
    written = ", ".join(action.option_strings) or formatter._format_args(action, action.dest)
    if action.option_strings and action.nargs != 0:
        written += " " + formatter._format_args(action, formatter._get_default_metavar_for_optional(action))
    meaning = formatter._expand_help(action) if action.help else ""
    return f"`{written}`", meaning


def schema_page() -> str:
    """Return the page of the policy file's schema."""
    schema = policy_schema()
    parts = [
        "# Schema of the policy file\n",
        "[policy.schema.json](policy.schema.json) is the JSON Schema (draft 2020-12) of the policy file; "
        "`vsrt policy schema` prints it, and the package has it as `controller/config/policy.schema.json`. "
        "It is made of the declarations that check the file; [the policy file](../policy.md) says what it means.\n",
        "## The file\n",
        properties_table(schema),
    ]
    for name, part in schema["$defs"].items():
        parts += [f"## {name}\n", f"{part['description']}\n" if "description" in part else ""]
        parts.append(properties_table(part) if "properties" in part else f"{kind_of(part)}\n")
    return "\n".join(parts)


def properties_table(schema: dict[str, Any]) -> str:
    """Return the keys of a mapping with their values."""
    required = schema.get("required", ())
    return table(
        ("key", "value", "default", "meaning"),
        (
            (
                f"`{name}`" + (" (required)" if name in required else ""),
                kind_of(part),
                f"`{str(part['default']).lower()}`" if "default" in part else "",
                part.get("description", ""),
            )
            for name, part in schema["properties"].items()
        ),
    )


def kind_of(schema: dict[str, Any]) -> str:
    """Return what a value may be, in words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(kind_of(choice) for choice in schema["anyOf"] if choice != {"type": "null"})
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return ", ".join(f"`{choice}`" for choice in schema["enum"])
    if "minimum" in schema and "maximum" in schema:
        return f"{schema['type']}, {schema['minimum']} to {schema['maximum']}"
    if "items" in schema:
        return f"list of {kind_of(schema['items'])}"
    if schema.get("additionalProperties") not in (None, True, False):
        return f"names to {kind_of(schema['additionalProperties'])}"
    words = {"string": "text", "object": "mapping", "boolean": "true or false", "array": "list"}
    types = schema.get("type", "anything")
    return " or ".join(words.get(type_, type_) for type_ in ([types] if isinstance(types, str) else types))


def api_description() -> dict[str, Any]:
    """Return the OpenAPI document that the dashboard serves."""
    board = Board(dict)
    api = build_api(
        board,
        Streams(board, RequestTally(), ServerLimits()),
        partial(act, Path()),
        StaticFiles(),
        past=None,
        runs=WorkflowRuns(WorkflowFolder(None), Path(), Path()),
        reads_need_token=False,
    )
    description: dict[str, Any] = api.openapi()
    return description


def api_page(api: dict[str, Any]) -> str:
    """Return the page of the REST API."""
    operations = [
        (method.upper(), path, operation)
        for path, methods in api["paths"].items()
        for method, operation in methods.items()
    ]
    parts = [
        "# REST API\n",
        "The app `dashboard` serves it; [openapi.json](openapi.json) is its description (OpenAPI 3.1), which a "
        "running one has at `/api/v1/openapi.json`. How it is started and kept safe: [dashboard](../dashboard.md).\n",
        f"{api['info']['description']}\n",
        table(
            ("request", "what it does", "token"),
            (
                (
                    f"[`{method} {path}`](#{operation['operationId'].lower()})",
                    operation["description"],
                    "needed" if "security" in operation else "",
                )
                for method, path, operation in operations
            ),
        ),
        "## Requests\n",
    ]
    for method, path, operation in operations:
        parts += [f"### {operation['operationId']}\n", f"`{method} {path}`: {operation['description']}\n"]
        parameters = operation.get("parameters", ())
        if parameters:
            rows = (
                (f"`{given['name']}`", given["in"], kind_of(given["schema"]), given.get("description", ""))
                for given in parameters
            )
            parts.append(table(("parameter", "in", "value", "meaning"), rows))
        if "requestBody" in operation:
            parts.append(f"Body: {content_of(operation['requestBody'])}.\n")
        parts.append(f"Answer: {content_of(operation['responses']['200'])}.\n")
    parts.append("## Documents\n")
    for name, schema in sorted(api["components"]["schemas"].items()):
        parts += [f"### {name}\n", f"{schema['description']}\n" if "description" in schema else ""]
        parts.append(properties_table(schema) if schema.get("properties") else f"{kind_of(schema)}\n")
    return "\n".join(parts)


def content_of(holder: dict[str, Any]) -> str:
    """Return what a request or answer holds, in words."""
    kinds = holder.get("content", {})
    return (
        ", ".join(f"{kind_of(content.get('schema', {}))} (`{kind}`)" for kind, content in kinds.items()) or "nothing"
    )


def metrics_page() -> str:
    """Return the page of the metrics that Prometheus is offered."""
    parts = {"Multicast and the controller": controller_metrics.FAMILIES, "Ports and switches": FAMILIES}
    return (
        "# Metrics\n\nThe controller offers these at `http://127.0.0.1:9471/metrics` (`monitor.prometheus` in "
        "[the policy file](../policy.md)), each where the app runs that knows it. "
        "[Outputs](../performance-manager-outputs.md#prometheus) has their labels, and says what is left out.\n"
        + "".join(
            f"\n## {title}\n\n"
            + table(("metric", "type", "meaning"), ((f"`{f.name}`", str(f.type), f.help) for f in families))
            for title, families in parts.items()
        )
    )
