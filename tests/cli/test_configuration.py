"""Every flag of `scan`, `report` and `serve` has a key and a variable, with the value that the flag would have."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest
import typer

from scanner.cli.application import ENTRIES, application, load
from scanner.cli.commands import runs
from scanner.cli.commands.catalog import (
    DEFINERS,
    SCHEDULE,
    find_key,
    list_defining_flags,
    list_settings,
)
from scanner.cli.commands.configured import WITHOUT_SETTINGS, configure_command
from scanner.config.combinations import FLAG_RULES, Requires
from scanner.config.environment import is_foreign
from scanner.config.flags import list_flags
from scanner.config.setting import Setting, ValueType
from scanner.config.unflagged import UNFLAGGED_KEYS
from scanner.documents.composer import compose
from scanner.model.json import as_list, as_object, dig
from tests.cli.conftest import Assay
from tests.cli.manifests import bound, config_map

Write = Callable[[str, str], Path]
COMMANDS: Mapping[str, Any] = typer.main.get_command(application).commands  # type: ignore[attr-defined]
SAMPLES = {
    "DURATION": "5m",
    "DATE": "2026-01-31",
    "VERSION": "1.36",
    "RELEASE": "1.18",
    "LABELS": "app=web",
    "NS=KEY=VALUE": "shop=env=production",
    "SCHEDULE": "@daily",
    "ZONE": "Europe/Berlin",
    "HOST:PORT": "127.0.0.1:0",
}
NUMBER = "3"


def sample(setting: Setting) -> str:
    """A value of a setting, as text."""
    if setting.choices:
        return setting.choices[-1]
    match setting.form:
        case ValueType.BOOLEAN:
            return "true"
        case ValueType.INTEGER | ValueType.NUMBER:
            return NUMBER
        case ValueType.STRING:
            return SAMPLES.get(setting.metavar, "x")


def yaml_of(setting: Setting, text: str) -> str:
    """A line of the file that has the value."""
    written = text if setting.form is not ValueType.STRING else f'"{text}"'
    section, dot, name = setting.key.rpartition(".")
    line = f"{name}: {f'[{written}]' if setting.many else written}"
    return f"{section}: {{{line}}}" if dot else line


def probe(command: Callable[..., None]) -> tuple[typer.Typer, list[dict[str, object]]]:
    """An application whose only command has the flags of another one, and records the values that it gets."""
    calls: list[dict[str, object]] = []

    def record(**values: object) -> None:
        calls.append({name: value for name, value in values.items() if name != "arguments"})

    record.__signature__ = inspect.signature(command, eval_str=True)  # type: ignore[attr-defined]
    app = typer.Typer()
    app.command()(configure_command(record))
    return app, calls


@pytest.mark.parametrize("command", DEFINERS)
def test_every_flag_is_a_setting(command: str) -> None:
    """A new flag of these commands gets its key and its variable without a list."""
    flags = {max(each.opts, key=len) for each in COMMANDS[command].params if each.param_type_name == "option"}
    assert {"--config"} == flags - {setting.flag for setting in list_settings() if command in setting.commands}
    assert len(flags) > 8


def test_every_key_and_variable_has_one_setting() -> None:
    """No two flags share a key, and no variable is one that Kubernetes may set."""
    names = [setting.key for setting in list_settings()] + [each.key for each in UNFLAGGED_KEYS]
    assert sorted(set(names)) == sorted(names)
    variables = [setting.variable for setting in list_settings()]
    assert sorted(set(variables)) == sorted(variables)
    assert [] == [name for name in variables if is_foreign(name)]


def test_no_flag_is_called_port() -> None:
    """The variable would be ASSAY_PORT, which Kubernetes sets beside a Service named assay."""
    assert is_foreign("ASSAY_PORT")
    assert "--port" not in list_defining_flags()


def test_flags_of_both_commands_have_one_type() -> None:
    """A key means the same to both."""
    for name, flags in list_defining_flags().items():
        assert 1 == len({(flag.type, flag.many) for flag in flags.values()}), name


def test_rules_are_about_flags_that_exist() -> None:
    """A renamed flag must not lose its rules."""
    names = {flag.name for command in (*DEFINERS.values(), runs.command) for flag in list_flags(command)}
    named = {rule.flag for rule in FLAG_RULES} | {rule.needed for rule in FLAG_RULES if isinstance(rule, Requires)}
    assert {"RUN", *named} <= {"RUN", *names}


@pytest.mark.parametrize("setting", list_settings(), ids=lambda setting: setting.key)
def test_a_variable_and_a_key_have_the_value_of_the_flag(
    setting: Setting, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command cannot tell the three apart."""
    app, calls = probe({**DEFINERS, "runs": runs.command}[setting.commands[0]])
    # A flag that needs another one finds that one in the file.
    needed = {
        rule.needed: rule.values for rule in FLAG_RULES if isinstance(rule, Requires) and rule.flag == setting.flag
    }
    others = [
        yaml_of(each, (needed[each.flag] or (sample(each),))[0]) for each in list_settings() if each.flag in needed
    ]
    text = sample(setting)
    own = yaml_of(setting, text)
    flag = [setting.flag] if setting.form is ValueType.BOOLEAN else [setting.flag, text]
    if setting.key.startswith("schedule.") and others:
        own = f"schedule: {{{own.partition('{')[2][:-1]}, {others.pop().partition('{')[2][:-1]}}}"
        others_alone = ['schedule: {cron: "@daily"}']
    else:
        others_alone = others

    (home / "assay.yaml").write_text("\n".join(others_alone))
    app(flag, standalone_mode=False)
    monkeypatch.setenv(setting.variable, text)
    app([], standalone_mode=False)
    monkeypatch.delenv(setting.variable)
    (home / "assay.yaml").write_text("\n".join([own, *others]))
    app([], standalone_mode=False)

    default = {parameter.parameter: parameter.default for parameter in list_flags(DEFINERS["scan"])}
    assert calls[0] == calls[1] == calls[2]
    assert calls[0] != default


@pytest.mark.parametrize(
    ("arguments", "variable", "file", "expected"),
    [
        (("-o", "json"), "policyreport", "openreports", b'"schemaVersion"'),
        ((), "policyreport", "json", b"wgpolicyk8s.io"),
        ((), "json", "", b'"schemaVersion"'),
        ((), "", "json", b'"schemaVersion"'),
        ((), "", "", b"COMPLETE"),
    ],
)
def test_a_flag_comes_before_a_variable_before_the_file(
    assay: Assay,
    write: Write,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    variable: str,
    file: str,
    expected: bytes,
) -> None:
    """And the default comes last."""
    write("all.yaml", f"{config_map('one')}---\n{bound('strict')}")
    write("assay.yaml", f"from: [all.yaml]\nquiet: true\n{f'output: {file}' if file else ''}\n")
    if variable:
        monkeypatch.setenv("ASSAY_OUTPUT", variable)
    assert expected in assay("scan", *arguments).stdout


def test_a_value_of_the_file_does_not_conflict_with_a_flag(assay: Assay, write: Write) -> None:
    """`--from` on the command line leaves out the context and the user of the file."""
    write("all.yaml", f"{config_map('one')}---\n{bound('strict')}")
    write("assay.yaml", "context: production\nas: jane\nasGroup: [auditors]\nnamespace: [elsewhere]\n")
    ran = assay("scan", "--from", "all.yaml", "-A", "-q")
    assert (0, "") == (ran.code, ran.stderr)


@pytest.mark.parametrize(
    ("file", "variables", "message"),
    [
        (
            "from: [all.yaml]\ncontext: x\n",
            {},
            "from in assay.yaml, line 1, column 7 cannot be combined with context in assay.yaml, line 2, column 10: --from",
        ),
        ("", {"ASSAY_PUSH_METRICS_TOKEN_FILE": "x"}, "ASSAY_PUSH_METRICS_TOKEN_FILE needs --push-metrics"),
        (
            "from: [all.yaml]\nkeepLabel: [a b]\n",
            {},
            "such as team or example.com/team (--keep-label comes from keepLabel in assay.yaml, line 2, column 12)",
        ),
        (
            "",
            {"ASSAY_OUTPTU": "json"},
            "ASSAY_OUTPTU is unknown: unset it, or correct its name. Did you mean ASSAY_OUTPUT?",
        ),
        ("", {"ASSAY_NAMESPACE": ""}, "ASSAY_NAMESPACE is empty: give a value, or unset the variable"),
        (
            "requestTimeout: 5 minutes\n",
            {},
            "line 1, column 17: requestTimeout: write a duration such as 30",
        ),
        (
            "kubernetesVersion: 1.30\n",
            {},
            "line 1, column 20: kubernetesVersion: must be a string, not a number: quote it",
        ),
        ("at: yesterday\n", {}, "line 1, column 5: at: write a date such as 2026-03-31"),
        ("schedule: {cron: '* * *'}\n", {}, "line 1, column 18: schedule.cron: "),
        ("selector: 'a in'\n", {}, "line 1, column 11: selector: "),
    ],
)
def test_an_error_names_the_place_of_the_value(
    assay: Assay, write: Write, monkeypatch: pytest.MonkeyPatch, file: str, variables: Mapping[str, str], message: str
) -> None:
    """With exit code 2, also for what the command itself rejects."""
    write("all.yaml", f"{config_map('one')}---\n{bound('strict')}")
    write("assay.yaml", file)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    ran = assay("scan", "-q")
    assert (2, b"") == (ran.code, ran.stdout)
    assert message in ran.stderr


def test_a_scan_runs_in_a_pod_beside_a_service_named_assay(
    assay: Assay, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The variables of the Service, and of a database assay-db, set nothing."""
    write("all.yaml", f"{config_map('one')}---\n{bound('strict')}")
    for service in ("ASSAY", "ASSAY_DB"):
        monkeypatch.setenv(f"{service}_SERVICE_HOST", "10.0.0.1")
        monkeypatch.setenv(f"{service}_SERVICE_PORT_HTTP", "80")
        monkeypatch.setenv(f"{service}_PORT", "tcp://10.0.0.1:80")
        monkeypatch.setenv(f"{service}_PORT_80_TCP_ADDR", "10.0.0.1")
    ran = assay("scan", "--from", "all.yaml", "-q")
    assert (0, "") == (ran.code, ran.stderr)


def test_a_scan_records_its_configuration_without_secrets(
    assay: Assay, write: Write, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    """The file and its digest, and every value that is no flag's; a later report has them, too."""
    write("all.yaml", f"{config_map('one')}---\n{bound('strict')}")
    write("assay.yaml", "from: [all.yaml]\nbaseline: token=hunter2\nfailOn: [new]\nworkers: 1\nallowEmpty: true\n")
    monkeypatch.setenv("ASSAY_EXCLUDE_NAMESPACE", "kube-*,password=hunter2")
    assert 1 == assay("scan", "-q", "--baseline", "", "--fail-on", "deny", "--html", "pages").code

    method = as_object(assay("report", "-o", "json", "--baseline", "", "--fail-on", "deny").report["method"])
    configuration = as_object(method["configuration"])
    assert ("assay.yaml", "sha256:") == (configuration["path"], str(configuration["digest"])[:7])
    assert [
        {"key": "from", "place": "assay.yaml, line 1, column 7", "value": "all.yaml"},
        {"key": "excludeNamespace", "place": "ASSAY_EXCLUDE_NAMESPACE", "value": "kube-*, password=[redacted]"},
        {"key": "workers", "place": "assay.yaml, line 4, column 10", "value": "1"},
        {"key": "allowEmpty", "place": "assay.yaml, line 5, column 13", "value": "true"},
    ] == configuration["settings"]
    assert "assay.yaml, line 4, column 10" in (home / "pages/method.html").read_text()
    sheet = " ".join(assay("runs", "1").stdout.decode().split())
    assert "assay.yaml, sha256:" in sheet
    assert "ASSAY_EXCLUDE_NAMESPACE" in sheet
    assert dig(orjson.loads(assay("runs", "1", "-o", "json").stdout), "method", "configuration") == configuration


def test_a_scan_names_its_file_on_stderr(assay: Assay, write: Write) -> None:
    """A file that a user forgot in the working directory is not applied in silence."""
    write("all.yaml", f"{config_map('one')}---\n{bound('strict')}")
    assert "Configuration" not in assay("scan", "--from", "all.yaml").stderr
    write("assay.yaml", "from: [all.yaml]\n")
    assert "Configuration assay.yaml\n" in assay("scan").stderr


def test_view_masks_secrets(assay: Assay, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the table and in JSON."""
    write("assay.yaml", "db: postgresql://bob:hunter2@db/assay\n")
    monkeypatch.setenv("ASSAY_HTML", "https://hunter2@host")
    table, document = assay("config", "view").stdout.decode(), assay("config", "view", "-o", "json").stdout.decode()
    for text in (table, document):
        assert "hunter2" not in text
        assert "postgresql://bob:[redacted]@db/assay" in text
    values = {dig(each, "key"): each for each in as_list(dig(orjson.loads(document), "settings"))}
    assert ("file", "environment", "default") == tuple(dig(values[key], "source") for key in ("db", "html", "output"))
    assert ("table", "ASSAY_OUTPUT", "--output") == tuple(
        dig(values["output"], name) for name in ("value", "variable", "flag")
    )


def test_view_has_the_settings_of_reports(assay: Assay, write: Write) -> None:
    """They have no flag, and a default where nothing is written."""
    write("assay.yaml", "owners: [{label: squad}]\n")
    lines = [line.split(maxsplit=1) for line in assay("config", "view").stdout.decode().splitlines() if line]
    rows = {key: " ".join(rest.split()) for key, rest in lines}
    assert 'assay.yaml, line 1, column 9 [{"label": "squad"}]' == rows["owners"]
    assert "default 7" == rows["expiringWaiverDays"]
    given = assay("config", "view", "--given").stdout.decode()
    assert ["KEY", "owners", "File"] == [line.split()[0] for line in given.splitlines() if line]


def test_check_prints_every_error(assay: Assay, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the file, of variables, and of values that exclude each other."""
    write("assay.yaml", "dbb: x\nqps: fast\n")
    monkeypatch.setenv("ASSAY_QUIET", "maybe")
    ran = assay("config", "check")
    assert (2, 3) == (ran.code, ran.stderr.count("assay: "))

    monkeypatch.delenv("ASSAY_QUIET")
    write("other.yaml", "from: [a]\nas: jane\n")
    ran = assay("config", "check", "--config", "other.yaml")
    assert (2, 1) == (ran.code, ran.stderr.count("cannot be combined"))

    write("good.yaml", "quiet: true\n")
    ran = assay("config", "check", "--config", "good.yaml")
    assert (0, "good.yaml: no error. 1") == (ran.code, ran.stdout.decode()[:22])


def test_init_writes_every_key_as_a_comment(assay: Assay, home: Path) -> None:
    """The file is valid as it is, without its comment signs it has every key, and the schema exists."""
    assert 0 == assay("config", "init").code
    assert 0 == assay("config", "check").code
    text = (home / "assay.yaml").read_text()
    [document] = compose(
        "\n".join(line.removeprefix("#") for line in text.splitlines() if line[:2] != "# ").encode(), "x"
    )
    keys = {setting.key.partition(".")[0] for setting in list_settings()} | {each.key for each in UNFLAGGED_KEYS}
    assert keys == set(document.entries())
    address = text.partition("$schema=")[2].partition("\n")[0]
    assert Path(address.removeprefix("file://")).is_file()

    again = assay("config", "init")
    assert (2, "assay: assay.yaml exists: name another file, or remove it\n") == (again.code, again.stderr)


def test_help_does_not_read_the_file(assay: Assay, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong file does not keep users from the help."""
    write("assay.yaml", "nonsense: [\n")
    monkeypatch.setenv("ASSAY_NONSENSE", "1")
    assert [0, 0, 0] == [assay(*arguments).code for arguments in (("--help",), ("scan", "--help"), ("version",))]


def test_runs_are_compared_with_the_schedule_of_the_file(assay: Assay, write: Write) -> None:
    """`runs` without `--expect` expects them; a number still names one run."""
    write("all.yaml", f"{config_map('one')}---\n{bound('strict')}")
    write("assay.yaml", "from: [all.yaml]\nquiet: true\nschedule: {cron: '17 2 * * *', timeZone: Europe/Berlin}\n")
    assay("scan")
    register = orjson.loads(assay("runs", "-o", "json").stdout)
    assert ("17 2 * * *", "Europe/Berlin") == (
        dig(register, "expect", "schedule"),
        dig(register, "expect", "timeZone"),
    )
    other = orjson.loads(assay("runs", "-o", "json", "--expect", "@daily").stdout)
    assert ("@daily", "Etc/UTC") == (dig(other, "expect", "schedule"), dig(other, "expect", "timeZone"))
    assert 0 == assay("runs", "1").code


def test_descriptions_and_owners_come_from_the_file(assay: Assay, write: Write) -> None:
    """The label that names the owner is kept by the scan."""
    write(
        "all.yaml",
        f"{config_map('one')}  labels: {{example.com/squad: blue}}\n---\n{bound('strict', expression='false')}",
    )
    write(
        "assay.yaml",
        "from: [all.yaml]\nquiet: true\nowners: [{label: example.com/squad}]\n"
        "descriptions: [{policy: 'str*', severity: critical}]\n",
    )
    [finding] = as_list(assay("scan", "-o", "json").report["findings"])
    assert ("blue", "critical") == (dig(finding, "owner"), dig(finding, "severity"))


def test_the_commands_without_settings_are_known() -> None:
    """The flag --config follows from the flags of a command, whose settings are not imported to know this."""
    commands = [command for entry in ENTRIES for command in _commands(load(entry))]
    without = {name for name, command in commands if not any(map(find_key, list_flags(command)))}
    assert without == WITHOUT_SETTINGS


def test_other_commands_share_the_settings_of_equal_flags() -> None:
    """Filters of their own, such as `findings --namespace`, are no settings."""
    shared = {
        name: {flag.name for flag in list_flags(command) if find_key(flag)}
        for entry in ENTRIES
        for name, command in _commands(load(entry))
        if name not in DEFINERS
    }
    connection = {"--kubeconfig", "--context", "--as", "--as-group"}
    assert {"--db", "--cluster-name", *SCHEDULE} == shared["runs"]
    assert {"--db", "--cluster-name", "--at", "--waivers", "--controls"} == shared["findings"]
    assert {"--db", "--cluster-name"} == shared["trend"] == shared["diff"] == shared["explain"]
    assert connection < shared["rbac check"]
    assert {"--namespace", "--skip-kind", "--policies", "--kyverno-resource-filters"} < shared["rbac generate"]
    assert {*connection, "--namespace", "--kind", "--skip-kind", "--request-timeout", "--quiet"} == shared[
        "verify-parity"
    ]
    assert set() == shared["test"] == shared["version"] == shared["config check"]


def _commands(app: typer.Typer, group: str = "") -> list[tuple[str, Callable[..., None]]]:
    """The commands of an application with their names, and those of its groups."""
    named: list[tuple[str, Callable[..., None]]] = []
    for each in app.registered_commands:
        assert each.callback is not None
        named.append((f"{group}{each.name or each.callback.__name__}", each.callback))
    for sub in app.registered_groups:
        assert sub.typer_instance is not None
        named.extend(_commands(sub.typer_instance, f"{group}{sub.name} "))
    return named


def test_the_default_of_the_image_comes_after_the_file(
    assay: Assay, write: Write, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database that the file names is not replaced by the one in the volume of the image."""
    write("all.yaml", f"{config_map('one')}---\n{bound('strict')}")
    monkeypatch.setenv("ASSAY_DEFAULT_DB", "volume.db")
    assay("scan", "--from", "all.yaml", "-q")
    write("assay.yaml", "db: named.db\n")
    assay("scan", "--from", "all.yaml", "-q")
    assert ["named.db", "volume.db"] == sorted(path.name for path in home.glob("*.db"))
