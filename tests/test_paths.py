"""Encodings, workbooks, and kinds of files that are not read."""

import gzip
import json
import tempfile
import zipfile
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

import pytest

import isocost as ic
from isocost.engines.kinds import FOREIGN, FORMATS

ROWS = [(round(0.05 + 0.9 * i / 60, 4), int(i % 7 > 3), "é" if i % 2 else "a") for i in range(60)]
SCORES, LABELS, GROUPS = map(list, zip(*ROWS, strict=True))
TALLY = ic.tally(score=SCORES, label=LABELS, group=GROUPS)
TEXT = "score,label,group\n" + "".join(f"{h},{y},{g}\n" for h, y, g in ROWS)


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    """Nothing may stay behind in the temporary folder, whatever happens."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "options", "found"),
    [
        (TEXT.encode(), {}, None),
        (TEXT.encode("utf-8-sig"), {}, None),
        (TEXT.encode("utf-8-sig"), {"encoding": "utf-8"}, None),
        (TEXT.replace("\n", "\r\n").encode("utf-8-sig"), {}, None),
        (TEXT.encode("utf-16"), {}, "utf-16"),
        (TEXT.encode("utf-16-be"), {"encoding": "utf-16-be"}, "utf-16-be"),
        (TEXT.encode("cp1252"), {"encoding": "windows-1252"}, "windows-1252"),
        (TEXT.encode("latin-1"), {"encoding": "latin-1"}, "latin-1"),
        (TEXT.encode("cp850"), {"encoding": "cp850"}, "cp850"),
    ],
)
def test_encodings(tmp_path, content, options, found):
    expected = found or "utf-8"
    for name, data in (("d.csv", content), ("d.csv.gz", gzip.compress(content))):
        (tmp_path / name).write_bytes(data)
        tally = ic.tally(tmp_path / name, **options)
        assert tally == TALLY
        assert tally.reading.encoding == expected
    assert ic.Tally.from_json(tally.to_json()).reading == tally.reading


def test_an_encoding_that_shows_late_and_several_files(tmp_path):
    # DuckDB looks at 20,480 rows first; here the last line alone is not UTF-8.
    many = b"score,label,group\n" + b"0.5,1,a\n0.25,0,a\n" * 15_000 + b"0.5,0,\xe9\n"
    (tmp_path / "late.csv").write_bytes(many)
    with pytest.warns(ic.ReadingWarning, match="groups look like 'é'; if"):
        tally = ic.tally(tmp_path / "late.csv")
    assert tally.groups == ("a", "é")
    assert (tally.n, tally.reading.encoding) == (30_001, "windows-1252")
    for sex, rows in (("f", ROWS[:30]), ("m", ROWS[30:])):
        folder = tmp_path / "parts" / f"sex={sex}"
        folder.mkdir(parents=True)
        lines = "".join(f"{h},{y},{g}\n" for h, y, g in rows)
        (folder / "d.csv").write_bytes(("score,label,group\n" + lines).encode("utf-16"))
    assert ic.tally(tmp_path / "parts") == TALLY
    assert ic.tally(tmp_path / "parts", group="sex").groups == ("f", "m")
    rule = ic.Rule(("a", "é"), (), "none")
    ic.apply_file(rule, tmp_path / "parts", tmp_path / "out.csv", id="id")
    assert ic.tally(tmp_path / "out.csv") == TALLY
    path = tmp_path / "parts" / "sex=f" / "d.csv"
    with pytest.raises(ic.FileError, match="must not be the input"):
        ic.apply_file(rule, tmp_path / "parts", path, force=True, id="id")


def test_a_decimal_comma_that_shows_late(tmp_path):
    path = tmp_path / "late.csv"
    path.write_text("score;label;group;w\n" + "0;0;a;1\n1;1;a;2\n" * 15_000 + "0,5;1;b;3\n")
    tally = ic.tally(path, weight="w")
    assert (tally.n, tally.reading.decimal) == (30_001, ",")
    path.write_text(path.read_text() + "0.5;1;b;1\n")
    with pytest.raises(ic.DataError, match="must have one decimal sign in every row"):
        ic.tally(path)
    path.write_text("score,label,group\n" + "0,0,a\n1,1,b\n" * 40)
    assert ic.tally(path).reading.decimal == "."


def test_text_that_is_not_needed_may_be_in_any_encoding(tmp_path):
    lines = TEXT.splitlines()
    good = [f"{line},Zürich".encode() for line in lines * 400]
    rows = [lines[0].encode() + b",place", *(g for g in good if not g.startswith(b"score"))]
    path = tmp_path / "d.csv"
    path.write_bytes(b"\n".join([*rows, *(row.replace("ü".encode(), b"\xfc") for row in rows[1:])]))
    tally = ic.tally(path)
    assert tally.n == 2 * 400 * len(ROWS)
    assert tally.reading.encoding == "utf-8"
    with pytest.raises(ic.FileError, match=r"UTF-8 up to byte .*, and then 0xFC, which is not"):
        ic.tally(path, group="place")


NAMES = {
    "cp1251": ("Москва", "Самара"),
    "cp1250": ("Łódź", "Toruń"),
    "iso8859-9": ("İzmir", "Iğdır"),
    "gb18030": ("北京", "南京"),
    "cp1252": ("Genève", "Zürich"),
}


@pytest.mark.parametrize("encoding", NAMES)
def test_an_encoding_that_is_guessed_is_told(tmp_path, command, encoding):
    first, second = NAMES[encoding]
    text = TEXT.replace(",a\n", f",{first}\n").replace(",é\n", f",{second}\n")
    path = tmp_path / "d.csv"
    path.write_bytes(text.encode(encoding))
    shown = [repr(name.encode(encoding).decode("cp1252")) for name in (first, second)]
    told = "Text was read as windows-1252; groups look like {}; if that is wrong, pass {}."
    with pytest.warns(ic.ReadingWarning) as warned:
        tally = ic.tally(path)
    (message,) = (str(one.message) for one in warned)
    assert message == told.format(", ".join(sorted(shown)), "encoding=")
    assert warned[0].filename == __file__
    assert (tally.reading.encoding, tally.reading.guessed) == ("windows-1252", "encoding")
    saved = ic.Tally.from_json(tally.to_json())
    audit = ic.audit(saved, confidence=None)
    assert message in " ".join(str(audit).split())
    assert audit.to_dict()["reading_notes"] == [message]
    # The sum of both keeps the doubt; without the names there is none.
    both = ic.audit(saved + TALLY, confidence=None).to_dict()["reading_notes"]
    assert both[0].startswith("Text was read as windows-1252 and utf-8; groups look like")
    plain = saved.relabel({name: str(i) for i, name in enumerate(saved.groups)})
    told_plainly = ic.audit(plain, confidence=None).to_dict()["reading_notes"]
    assert told_plainly == ["Text was read as windows-1252."]
    _, out, err = command("audit", path, "--replicates", 0, "--json")
    in_shell = told.format(", ".join(sorted(shown)), "--encoding")
    assert f"note: {in_shell}\n" in err
    assert json.loads(out)["reading_notes"] == [in_shell]
    rule = ic.Rule(saved.groups, (), "none")
    with pytest.warns(ic.ReadingWarning, match="if that is wrong, pass encoding=") as warned:
        ic.apply_file(rule, path, tmp_path / "out.csv")
    assert warned[0].filename == __file__
    # Named, it is neither warned of nor noted as a guess.
    asked = ic.tally(path, encoding=encoding)
    assert set(asked.groups) == {first, second}
    notes = ic.audit(asked, confidence=None).to_dict()["reading_notes"]
    assert notes == [f"Text was read as {encoding}."]


def test_bytes_that_windows_1252_lacks_ask_for_the_encoding(tmp_path):
    path = tmp_path / "d.csv"
    path.write_bytes(TEXT.replace("é", "丂").encode("gb18030"))
    with pytest.raises(ic.FileError) as raised:
        ic.tally(path)
    (problem,) = raised.value.problems
    assert problem.rule == "must be text in UTF-8 or Windows-1252"
    assert problem.got.endswith("the byte 0x81, which neither has")
    assert problem.next_step.startswith('pass its encoding, for example encoding="cp850"')
    assert ic.tally(path, encoding="gb18030").groups == ("a", "丂")


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (
            TEXT.encode() + b"0.5,1,\xe9\n",
            {},
            "must be text in one encoding\n  got:  .*UTF-8 up to",
        ),
        (TEXT.encode("cp1252") + b"0.5,1,\x81\n", {}, "UTF-8 or Windows-1252\n  got:  .*0x81"),
        (TEXT.encode("cp1252") + b"0.5,1,\x01\n", {}, "the control character 0x01"),
        (TEXT.encode("utf-16-le"), {}, 'pass encoding="utf-16-le"'),
        (TEXT.encode("cp1252"), {"encoding": "utf-8"}, "must be text in UTF-8"),
        (TEXT.encode("cp1252"), {"encoding": "ascii"}, "must be text in UTF-8"),
        (TEXT.encode(), {"encoding": "utf-32"}, "must be text in utf-32"),
        (TEXT.encode(), {"encoding": "klingon"}, "encoding: must be the name of a text encoding"),
        (TEXT.encode(), {"encoding": "base64"}, "encoding: must be the name of a text encoding"),
        (TEXT.encode(), {"sheet": "Data"}, "sheet: must be left out: only workbooks"),
    ],
)
def test_encodings_that_do_not_fit(tmp_path, content, options, message):
    (tmp_path / "d.csv").write_bytes(content)
    with pytest.raises(ic.IsocostError, match=message) as raised:
        ic.tally(tmp_path / "d.csv", **options)
    assert "next: " in str(raised.value)


def test_encodings_are_for_text(tmp_path):
    with pytest.raises(ic.UsageError, match="encoding: is a setting for files"):
        ic.tally({"score": [0.5], "label": [1], "group": ["a"]}, encoding="utf-8")
    (tmp_path / "d.parquet").write_bytes(b"PAR1")
    with pytest.raises(ic.UsageError, match="Parquet has none"):
        ic.tally(tmp_path / "d.parquet", encoding="latin-1")


_MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"


def _cell(value):
    if isinstance(value, str):
        return f'<c t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    if isinstance(value, bool):
        return f'<c t="b"><v>{int(value)}</v></c>'
    return "<c/>" if value is None else f"<c><v>{value!r}</v></c>"


def _related(items):
    listed = "".join(f'<Relationship Id="{i}" Type="{_RELATIONS}/{kind}" Target="{target}"/>'
                     for i, kind, target in items)  # fmt: skip
    return f'<Relationships xmlns="{_PACKAGE}/relationships">{listed}</Relationships>'


def workbook(path: Path, sheets: dict) -> Path:
    """Write a small workbook by hand, from rows by the name of their sheet."""
    names = "".join(f'<sheet name={quoteattr(name)} sheetId="{i + 1}" r:id="r{i}"/>'
                    for i, name in enumerate(sheets))  # fmt: skip
    parts = [(f"r{i}", "worksheet", f"worksheets/s{i}.xml") for i in range(len(sheets))]
    with zipfile.ZipFile(path, "w") as book:
        book.writestr("[Content_Types].xml", f'<Types xmlns="{_PACKAGE}/content-types"/>')
        book.writestr("_rels/.rels", _related([("r", "officeDocument", "xl/workbook.xml")]))
        text = f'<workbook {_MAIN} xmlns:r="{_RELATIONS}"><sheets>{names}</sheets></workbook>'
        book.writestr("xl/workbook.xml", text)
        book.writestr("xl/_rels/workbook.xml.rels", _related(parts))
        for i, rows in enumerate(sheets.values()):
            lines = "".join(f"<row>{''.join(map(_cell, row))}</row>" for row in rows)
            text = f"<worksheet {_MAIN}><sheetData>{lines}</sheetData></worksheet>"
            book.writestr(f"xl/worksheets/s{i}.xml", text)
    return path


def test_workbooks(tmp_path):
    pytest.importorskip("python_calamine", reason="workbooks need the extra excel")
    rows = [["score", "label", "group"], *ROWS]
    # Labels may be booleans; an empty line at the end is none.
    marked = [["score", "label", "group"], *((h, bool(y), g) for h, y, g in ROWS), [None] * 3]
    path = workbook(tmp_path / "d.xlsx", {"Notes": [["made by hand"]], "Men & women": marked})
    tally = ic.tally(path)
    assert tally == TALLY
    assert tally.reading.sheet == "Men & women"
    assert "Rows were read from sheet 'Men & women'." in str(ic.audit(tally, confidence=None))
    two = workbook(tmp_path / "two.xlsx", {"Data": rows, "Old": rows[:9]})
    with pytest.raises(ic.UsageError) as raised:
        ic.tally(two)
    assert str(raised.value).startswith("sheet: must be named, unless only one sheet has rows")
    assert "has 2 with rows: 'Data', 'Old'" in str(raised.value)
    assert 'next: pass sheet="Data"' in str(raised.value)
    assert ic.tally(two, sheet="Data") == TALLY
    with pytest.raises(ic.UsageError, match=r"'Dta', and the sheets of .* are 'Data', 'Old'"):
        ic.tally(two, sheet="Dta")
    with pytest.raises(ic.UsageError, match="has none with rows"):
        ic.tally(workbook(tmp_path / "none.xlsx", {"A": [["score"]]}))
    with pytest.raises(ic.UsageError, match="must be left out: a workbook has none"):
        ic.tally(path, encoding="utf-8")
    (tmp_path / "broken.xlsx").write_bytes(path.read_bytes()[:400])
    with pytest.raises(ic.FileError, match="must be readable as an Excel workbook"):
        ic.tally(tmp_path / "broken.xlsx")
    rule = ic.Rule(("a", "é"), (), "none")
    assert ic.apply_file(rule, path, tmp_path / "out.csv", id="id") == 60
    assert ic.tally(tmp_path / "out.csv") == TALLY
    with pytest.raises(ic.FileError, match="output: must be of a kind that is written"):
        ic.apply_file(rule, path, tmp_path / "out.xlsx", id="id")


def with_sheet(path, cells, **parts):
    """Write a workbook whose sheet holds these cells as XML, and further parts."""
    workbook(path, {"Data": [["score"]]})
    with zipfile.ZipFile(path) as book:
        found = {name: book.read(name) for name in book.namelist()}
    found["xl/worksheets/s0.xml"] = (
        f"<worksheet {_MAIN}><sheetData>{cells}</sheetData></worksheet>".encode()
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
        for name, content in (found | parts).items():
            book.writestr(name, content)
    return path


def placed(rows):
    """Cells with their references, as all programs write them."""
    lines = (
        (i, "".join(_cell(v).replace("<c", f'<c r="{"ABC"[j]}{i}"', 1) for j, v in enumerate(row)))
        for i, row in enumerate(rows, 1)
    )
    return "".join(f'<row r="{i}">{line}</row>' for i, line in lines)


ONE = '<row r="1"><c r="A1"><v>1</v></c></row>'
FAR = {
    "far cell": ONE + '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>',
    "far column": ONE + '<row r="1048576"><c r="ZZ1048576"><v>1</v></c></row>',
    "other row": ONE + '<row r="2"><c r="XFD1048576"><v>1</v></c></row>',
    "small letters": ONE + "<row r='2'><c  r='xfd1048576'><v>1</v></c></row>",
    "late reference": ONE + '<row r="2"><c s="/>" r="XFD1048576"><is><t>x</t></is></c></row>',
    "prefix": ONE + '<x:row xmlns:x="x" r="9"><x:c r="XFD1048576"><x:v>1</x:v></x:c></x:row>',
    "no reference": ONE + '<row r="1048576">' + "<c><v>1</v></c>" * 50 + "</row>",
    "no references": "<row/>" * 9999 + "<row>" + "<c><v>1</v></c>" * 9999 + "</row>" + ONE,
}


@pytest.mark.parametrize("cells", FAR.values(), ids=FAR)
def test_a_workbook_with_a_far_cell_is_refused(tmp_path, cells):
    pytest.importorskip("python_calamine", reason="workbooks need the extra excel")
    path = with_sheet(tmp_path / "d.xlsx", cells)
    assert path.stat().st_size < 10_000
    for use in (ic.tally, ic.look):
        with pytest.raises(ic.FileError) as raised:
            use(path)
        (problem,) = raised.value.problems
        assert problem.rule == "must have sheets whose cells span at most 33,554,432 places"
        assert problem.next_step == "save the sheet as CSV, without what is outside the table"


def test_empty_cells_far_away_are_no_obstacle(tmp_path):
    pytest.importorskip("python_calamine", reason="workbooks need the extra excel")
    rows = placed([["score", "label", "group"], *ROWS])
    for far in ("", '<row r="1048576"><c r="XFD1048576" s="1"/></row>'):
        assert ic.tally(with_sheet(tmp_path / "d.xlsx", rows + far)) == TALLY
    # Rows may begin anywhere.
    low = rows.replace('="A', '="XFA').replace('="B', '="XFB').replace('="C', '="XFC')
    assert ic.tally(with_sheet(tmp_path / "low.xlsx", low)) == TALLY


def test_workbooks_that_are_something_else(tmp_path, monkeypatch):
    pytest.importorskip("python_calamine", reason="workbooks need the extra excel")
    rows = placed([["score", "label", "group"], *ROWS])
    path = with_sheet(tmp_path / "bomb.xlsx", rows, **{"xl/sharedStrings.xml": b" " * 2**21})
    monkeypatch.setattr("isocost.engines.kinds._MOST_BYTES", 2**20)
    with pytest.raises(ic.FileError, match="file: must unpack to at most 1 MiB"):
        ic.tally(path)
    monkeypatch.undo()
    # The size that the archive names is not believed: here it hides all cells but the first.
    content = bytearray(with_sheet(tmp_path / "lie.xlsx", FAR["far cell"]).read_bytes())
    entry = content.rindex(b"PK\x01\x02", 0, content.rindex(b"xl/worksheets/s0.xml"))
    content[entry + 24 : entry + 28] = (20).to_bytes(4, "little")
    (tmp_path / "lie.xlsx").write_bytes(content)
    others = {
        "lie": "whose cells span",
        "ods": "not an .xlsx workbook",
        "text": "must be readable as an Excel workbook",
        "entity": "a document type",
    }
    with_sheet(tmp_path / "ods.xlsx", rows, **{"content.xml": b"<x/>"})
    (tmp_path / "text.xlsx").write_text(TEXT)
    with_sheet(tmp_path / "entity.xlsx", "<c><v>1</v></c>")
    with zipfile.ZipFile(tmp_path / "entity.xlsx", "a") as book:
        laughs = '<!DOCTYPE x [<!ENTITY a "a">]><x><sheetData><c/></sheetData>&a;</x>'
        book.writestr("xl/other.bin", laughs)
    for name, message in others.items():
        with pytest.raises(ic.FileError, match=message):
            ic.tally(tmp_path / f"{name}.xlsx")


@pytest.mark.parametrize("ending", FOREIGN)
def test_other_kinds_are_named_with_a_line_that_converts_them(tmp_path, ending):
    name, _ = FOREIGN[ending]
    with pytest.raises(ic.FileError) as raised:
        ic.tally(tmp_path / f"data{ending.upper()}")
    (problem,) = raised.value.problems
    assert problem.got.endswith(name)
    assert problem.next_step.startswith("convert it: ")
    assert "{}" not in problem.next_step
    assert ending not in {one for form in FORMATS.values() for one in form.endings}
