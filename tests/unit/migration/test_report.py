"""The report: every line once, of several things the gravest, of things within one another the innermost."""

from controller.migration.report import ImportReport, InputFile, Outcome, Place, counts


def place(line, last=None):
    return Place("f", line, last or line)


def report_of(text, comment=("#",)):
    report = ImportReport(comment)
    report.add(InputFile("f", text))
    return report


def outcomes(report):
    return [line.outcome for line in report.lines()]


def test_every_line_is_there_once_and_in_order():
    report = report_of("a\n\n# said\nb\n")
    report.taken(place(1), "one")
    report.taken(place(4), "four")
    lines = report.lines()
    assert [(line.line, line.text) for line in lines] == [(1, "a"), (2, ""), (3, "# said"), (4, "b")]
    assert [line.parts[0].what for line in lines] == ["one", "an empty line", "a comment", "four"]


def test_of_several_things_in_a_line_the_gravest_counts_and_none_is_said_twice():
    report = report_of("a\n")
    for _ in range(2):
        report.taken(place(1), "one")
        report.impossible(place(1), "why", "do this")
    (line,) = report.lines()
    assert line.outcome is Outcome.IMPOSSIBLE
    assert [part.what for part in line.parts] == ["one", "why"]


def test_lines_that_say_nothing_themselves_go_with_the_innermost_thing_around_them():
    report = report_of("a\nb\nc\nd\n")
    report.impossible(place(1, 4), "why", "do this")
    report.taken(place(2, 3), "two")
    assert outcomes(report) == [Outcome.IMPOSSIBLE, Outcome.TAKEN, Outcome.TAKEN, Outcome.IMPOSSIBLE]
    assert [line.parts[0].what for line in report.lines()][2:] == ["with line 2", "with line 1"]


def test_a_line_that_nothing_was_said_of_is_never_taken_for_understood():
    report = report_of("a\nb\n")
    report.taken(place(1), "one")
    assert outcomes(report) == [Outcome.TAKEN, Outcome.IMPOSSIBLE]


def test_counts_have_every_word_and_add_up():
    report = report_of("a\n\nb\n")
    report.changed(place(1), "otherwise")
    report.taken(place(3), "so")
    assert counts(report.lines()) == {"impossible": 0, "changed": 1, "taken": 1, "idle": 1}
