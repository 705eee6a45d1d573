#!/usr/bin/env python3
"""Compute the identity of OpenLineage events, as graphd does.

Prints one JSON line an event: the event ID, the content digest, the rule that
found the slot, and the identity document, the text that the ID hashes. An event
that graphd rejects gives a line with the pointer and the reason instead, and
exit status 1; a file that cannot be read ends it with status 2.

    identity.py event.json              one event, an array, or one event a line
    identity.py - < events.ndjson
    identity.py --check vectors.json    compare with recorded IDs

It needs nothing but Python 3.8 and the rules that graphd publishes
(docs/identity-rules.json). An operator's own class rules go behind the others
in "classes" of a copy of that file; the identity version follows from it.

What it cannot do: it has no JSON schemas. It takes every event for valid, and
where graphd would leave out a facet that breaks its schema, it reads the slot
and the parent from that facet all the same, and the content digest is another
one. Text with characters newer than Python's Unicode database may be composed
otherwise.
"""

import argparse
import datetime
import hashlib
import json
import os
import re
import sys
import unicodedata

IDENTITY, DRIFTING, FIXED, TRANSPORT = "identity", "drifting", "fixed", "transport"

MAX_DEPTH = 512  # of arrays and objects around a value
MAX_EXPONENT, MAX_DIGITS = 400, 1000  # of a number as its sender writes it
MAX_PLAIN = 40  # digits of an integral value that is written without an exponent


class Rejected(Exception):
    """Why a body is no event, and where."""

    def __init__(self, pointer, reason):
        super().__init__(reason)
        self.pointer, self.reason = pointer, reason


# Decoding: numbers stay the decimals that they are, text is composed.


class Number(str):
    """The canonical spelling of a number."""


class BadNumber:
    """A number beyond the limits, until its place is known."""

    def __init__(self, reason):
        self.reason = reason


NUMBER = re.compile(r"(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?)([0-9]+))?")


def number(literal):
    """Read a number exactly: equal values get equal spellings."""
    sign, whole, fraction, exponent_sign, exponent = NUMBER.fullmatch(literal).groups(default="")
    if exponent.lstrip("0")[:4] and int(exponent.lstrip("0")[:4]) > MAX_EXPONENT:
        return BadNumber("exponent of a number beyond ±%d" % MAX_EXPONENT)
    if len(whole) + len(fraction) + len(exponent) > MAX_DIGITS:
        return BadNumber("number of more than %d digits" % MAX_DIGITS)
    # The value is 0.d1d2d3... times 10 to the power of point.
    digits = whole + fraction
    point = len(whole) + int(exponent_sign + exponent if exponent else 0)
    point -= len(digits) - len(digits.lstrip("0"))
    digits = digits.strip("0")
    if not digits:
        return Number("0")
    if len(digits) <= point <= MAX_PLAIN:
        return Number(sign + digits + "0" * (point - len(digits)))
    if -6 < point <= 21 and is_shortest(digits, point):
        if point > 0:
            return Number(sign + digits[:point] + "." + digits[point:])
        return Number(sign + "0." + "0" * -point + digits)
    mantissa = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
    return Number("%s%se%+d" % (sign, mantissa, point - 1))


def is_shortest(digits, point):
    """Is this decimal the shortest one of the double nearest to it?"""
    if len(digits) <= 15:
        return True
    if len(digits) > 17:
        return False
    shortest = repr(float("0.%se%d" % (digits, point)))
    return shortest.split("e")[0].replace(".", "").strip("0") == digits


def compose(text):
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def members(pairs):
    # Of equal keys the last one counts, where it stands.
    found = {}
    for key, value in pairs:
        key = compose(key)
        found.pop(key, None)
        found[key] = value
    return found


def decode(text):
    """Read a body. What json reads beyond JSON (NaN, Infinity) is null."""
    root = json.loads(
        text[1:] if text.startswith("\ufeff") else text,
        parse_float=number, parse_int=number, parse_constant=lambda word: None, object_pairs_hook=members)
    return settle(root, "", 0)


def settle(value, pointer, depth):
    """Compose the text of a tree, and find what is beyond the limits."""
    if isinstance(value, BadNumber):
        raise Rejected(pointer, value.reason)
    if isinstance(value, str) and not isinstance(value, Number):
        return compose(value)
    if isinstance(value, (dict, list)) and depth == MAX_DEPTH:
        raise Rejected(pointer, "nested deeper than %d levels" % MAX_DEPTH)
    if isinstance(value, dict):
        for key, member in value.items():
            token = key.replace("~", "~0").replace("/", "~1")
            value[key] = settle(member, pointer + "/" + token, depth + 1)
    elif isinstance(value, list):
        for i, element in enumerate(value):
            value[i] = settle(element, "%s/%d" % (pointer, i), depth + 1)
    return value


# Canonical JSON: RFC 8785, with the numbers above and lone surrogates escaped.

ESCAPED = re.compile('["\\\\\x00-\x1f\ud800-\udfff]')
SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def quote(text):
    return '"' + ESCAPED.sub(lambda m: SHORT.get(m[0]) or "\\u%04x" % ord(m[0]), text) + '"'


def utf16(key):
    return key.encode("utf-16-be", "surrogatepass")


def canonical(value):
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, dict):
        return "{" + ",".join(quote(k) + ":" + canonical(value[k]) for k in sorted(value, key=utf16)) + "}"
    return "[" + ",".join(map(canonical, value)) + "]"


# Times.

TIME = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt ]([0-9]{2}):([0-9]{2})(?::([0-9]{2}))?(?:[.,]([0-9]+))?"
    r"(?:[Zz](?:\[[^\[\]]*\])?|([+-])([0-9]{2})(?::?([0-9]{2}))?(?:\[[^\[\]]*\])?)?")


def instant(text):
    """Return a time as an instant in UTC, None if the text is no time."""
    match = TIME.fullmatch(text)
    if not match:
        return None
    year, month, day, hour, minute, second, fraction, sign, zone_hours, zone_minutes = match.groups(default="0")
    try:
        days = datetime.date(int(year), int(month), int(day)).toordinal() - 1
    except ValueError:
        return None
    if int(hour) > 23 or int(minute) > 59 or int(second) > 59 or int(zone_hours) > 23 or int(zone_minutes) > 59:
        return None
    offset = 3600 * int(zone_hours) + 60 * int(zone_minutes)
    seconds = 86400 * days + 3600 * int(hour) + 60 * int(minute) + int(second) - (-offset if sign == "-" else offset)
    if not 0 < seconds < 86400 * datetime.date.max.toordinal():
        return None
    day = datetime.date.fromordinal(seconds // 86400 + 1)
    rest = seconds % 86400
    nanoseconds = fraction[:9].rstrip("0")
    return "%04d-%02d-%02dT%02d:%02d:%02d%sZ" % (
        day.year, day.month, day.day, rest // 3600, rest // 60 % 60, rest % 60, "." + nanoseconds if nanoseconds else "")


# Rules: which class a place of an event has, which arrays are sets.


def glob(pattern, text):
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text, re.DOTALL) is not None


def steps(path):
    """Split a rule's path: names, [] for elements, [member=value] for some."""
    return re.findall(r"\[[^\]]*\]|[^.\[]+", path)


CONTAINERS = {
    "event": [[]],
    "run": [["run", "facets"]],
    "job": [["job", "facets"]],
    "dataset": [["inputs", "[]", "facets"], ["outputs", "[]", "facets"], ["dataset", "facets"]],
    "input": [["inputs", "[]", "inputFacets"]],
    "output": [["outputs", "[]", "outputFacets"]],
}


class Place:
    """The rules that hold at one place of an event and below it.

    Each is (rank, order, steps still to go, what it says). The rank compares
    rules for one place: the more exact last step wins, then the step before.
    """

    def __init__(self, rules):
        self.rules = rules

    def class_or(self, around):
        here = [rule for rule in self.rules if not rule[2] and rule[3] in (IDENTITY, DRIFTING, FIXED, TRANSPORT)]
        return max(here)[3] if here else around

    def says(self, what):
        return any(not rule[2] and rule[3] == what for rule in self.rules)

    def member(self, key):
        found = []
        for rank, order, path, says in self.rules:
            if not path or path[0].startswith("["):
                continue
            step = path[0]
            if step == key and not step.endswith("*"):
                exactness = (1, 0)
            elif step.endswith("*") and key.startswith(step[:-1]):
                exactness = (0, len(step))
            else:
                continue
            found.append(((exactness,) + rank, order, path[1:], says))
        return Place(found)

    def element(self, value):
        found = []
        for rank, order, path, says in self.rules:
            if not path or not path[0].startswith("["):
                continue
            inside = path[0][1:-1]
            if inside:
                member, _, wanted = inside.partition("=")
                text = value.get(member) if isinstance(value, dict) else None
                if not is_text(text) or text != wanted:
                    continue
            found.append((((1 if inside else 0, 0),) + rank, order, path[1:], says))
        return Place(found)


def is_text(value):
    return isinstance(value, str) and not isinstance(value, Number)


def text_at(value, *keys):
    """Follow keys to a text; "" if there is none."""
    value = at(value, *keys)
    return value if is_text(value) else ""


def at(value, *keys):
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


# Credentials in connection URIs: the same as in internal/normalize/credentials.go.

PARAMETER_NAME = r"""[A-Za-z0-9_.%+\-\[\]$"'*!~ ]{1,100}"""
ORACLE_START = re.compile(r"(?:jdbc:)?oracle:(?:(?:thin|oci8?|kprb):)?", re.IGNORECASE | re.ASCII)
JDBC_START = re.compile(r"[Jj][Dd][Bb][Cc]:[^:/@?;#=]+:")
CONTAINER_START = re.compile(r"(?:\A|[^A-Za-z0-9+.\-])(?:abfss?|wasbs?)\Z", re.IGNORECASE | re.ASCII)
HOST = r"(?:\[[^\]]*\]|[^:,\[]*)(?::[0-9]*)?"
HOST_LIST = re.compile(HOST + "(?:," + HOST + r")*\Z")
QUERY_START = re.compile("[?;&#]" + PARAMETER_NAME + "=")
PARAMETER_START = re.compile(r"(\A|[?&;#:,( \t\r\n])(" + PARAMETER_NAME + ")=")
JDBC_PARAMETER_START = re.compile(r"(\A|[?&;#:,( \t\r\n/])(" + PARAMETER_NAME + ")=")


def strip_user_info(uri):
    scheme, found, _ = uri.partition("://")
    oracle = ORACLE_START.match(uri)
    if oracle and not uri.startswith("//", oracle.end()):
        rest = uri[oracle.end():]
        query = QUERY_START.search(rest)
        before = rest.rfind("@", 0, query.start() if query else len(rest))
        if before < 0:
            before = rest.rfind("@")
        uri = oracle.group() + rest[max(before, 0):]
    elif found and not re.search("[@/?;#= ]", scheme):
        pass
    elif uri.startswith("//"):
        uri = "//" + uri[2 + user_info(uri[2:], False):]
    else:
        uri = strip_bare_user_info(uri)
    start = uri.find("://")
    while start >= 0:
        scheme, rest = uri[:start], uri[start + 3:]
        end = user_info(rest, False)
        # The container of an Azure file system is no user.
        if CONTAINER_START.search(scheme) and ":" not in rest[:end]:
            end = 0
        uri = uri[:start + 3] + rest[end:]
        start = uri.find("://", start + 3)
    return uri


def strip_bare_user_info(uri):
    i = uri.find("@//")
    if i > 0 and "/" in uri[:i] and not re.search("[:=]", uri[:i]):
        return uri[i:]
    prefix = JDBC_START.match(uri)
    prefix = prefix.group() if prefix else ""
    rest = uri[len(prefix):]
    end = user_info(rest, True)
    user, found, _ = rest[:end].partition(":")
    if not found or "=" in user:
        return uri
    return prefix + rest[end:]


def user_info(rest, bare):
    """The length of the user information that an authority begins with."""
    length = 0
    while True:
        seg = rest[length:]
        cut = re.search("[/?;#&]", seg)
        cut = cut.start() if cut else len(seg)
        sign = seg.rfind("@", 0, cut)
        if sign >= 0:
            length += sign + 1
            continue
        sign = seg.find("@")
        if sign < 0 or bare and "/" in seg[:sign] or is_authority(seg, cut, length > 0):
            return length
        length += sign + 1


def is_authority(seg, cut, some):
    if seg[cut] == "/" and some:
        return True
    if not HOST_LIST.match(seg[:cut]):
        return False
    if seg[cut] == "/" or QUERY_START.match(seg, cut):
        return True
    return not some and ":" not in seg[:cut]


def value_end(uri, start, separator, starts, jdbc, bracket):
    """Where a parameter's value ends."""
    quoted = "{'\"".find(uri[start]) if start < len(uri) else -1
    if quoted >= 0:
        start = quoted_end(uri, start, "}'\""[quoted])
    before = "?;#&"
    if separator in ("?", "&", "#"):
        always = "&" if jdbc else "&#"
    elif separator in (";", ":"):
        always, before = ";", "?#"
    elif separator in (",", "/"):
        always = ",)" if bracket else ","
    elif separator == "(":
        always, before = ")", ",?;#&"
    elif separator == "":
        always, before = ";", "?&#, \t\r\n"
    else:
        always = " \t\r\n"
    for i in range(start, len(uri)):
        if uri[i] in always or uri[i] in before and i in starts:
            return i
    return len(uri)


def quoted_end(uri, start, mark):
    i = start + 1
    while i < len(uri):
        if uri[i] == mark:
            if uri[i + 1:i + 2] != mark:
                return i + 1
            i += 1
        i += 1
    return start


class Contract:
    """The identity contract that a rules file describes."""

    def __init__(self, rules, more_classes=()):
        self.rules = rules
        self.classes = rules["classes"] + list(more_classes)
        self.places = {}
        self.version = self.version_of()

    def version_of(self):
        parts = []
        for r in self.classes:
            parts += ["class", r.get("producer", ""), r["container"], r["facet"], r["path"], r["class"]]
        for name, table in (("set", "sets"), ("kept empty", "keptEmpty"), ("credentials", "credentials")):
            for r in self.rules[table]:
                parts += [name, r["container"], r["facet"], r["path"]]
        for name, table in (("credential parameter", "credentialParameters"), ("instant", "instants")):
            for text in self.rules[table]:
                parts += [name, text]
        for r in self.rules["places"]:
            parts += ["place", r["name"], r["producer"], r["integration"], r["except"], r["numbered"],
                      "true" if r["bySql"] else "false"]
        of_rules = digest("identity rules", canonical(parts))
        of_schemas = digest("identity schemas", canonical([self.rules["schemas"]]))
        return "%s.%s.%s" % (self.rules["contract"], of_rules[:8], of_schemas[:8])

    def place(self, producer):
        """The rules that hold for a producer, at the root of its events."""
        used = tuple(not r.get("producer") or glob(r["producer"], producer) for r in self.classes)
        if used not in self.places:
            found = []
            # Rules for some producers stand behind all others.
            chosen = [r for r, use in zip(self.classes, used) if use]
            chosen.sort(key=lambda r: bool(r.get("producer")))
            tables = [(chosen, None)] + [(self.rules[name], name) for name in ("sets", "keptEmpty", "credentials")]
            for table, name in tables:
                for r in table:
                    for root in CONTAINERS[r["container"]]:
                        path = root + ([r["facet"]] if r["facet"] else []) + steps(r["path"])
                        found.append(((), len(found), path, name or r["class"]))
            self.places[used] = Place(found)
        return self.places[used]

    def project(self, value, place, around, mask):
        """Return the canonical JSON of what of value is of the classes in mask.

        None if nothing is left. What is null or empty counts as absent.
        """
        its_class = place.class_or(around)
        if value is None or not place.rules and its_class not in mask:
            return None
        if isinstance(value, dict):
            parts = []
            for key in sorted(value, key=utf16):
                member, there = value[key], place.member(key)
                if is_text(member):
                    if key in self.rules["instants"]:
                        member = instant(member) or member
                    elif there.says("credentials"):
                        member = self.strip_credentials(member)
                text = self.project(member, there, its_class, mask)
                if text is not None:
                    parts.append(quote(key) + ":" + text)
            brackets = "{%s}"
        elif isinstance(value, list):
            parts = []
            for element in value:
                there = place.element(element)
                text = self.project(element, there, its_class, mask)
                if element is None and there.class_or(its_class) in mask:
                    text = "null"
                if text is not None:
                    parts.append(text)
            if place.says("sets"):
                parts = sorted(set(parts), key=lambda text: text.encode())
            brackets = "[%s]"
        else:
            return canonical(value) if its_class in mask else None
        if not parts and not (place.says("keptEmpty") and its_class in mask):
            return None
        return brackets % ",".join(parts)

    def strip_credentials(self, uri):
        """Remove user information and parameters that are credentials."""
        uri = strip_user_info(uri)
        jdbc = uri[:5].lower() == "jdbc:"
        matches = list((JDBC_PARAMETER_START if jdbc else PARAMETER_START).finditer(uri))
        starts = {m.start() for m in matches}
        kept, copied, lead = [], 0, None  # lead is still to be written

        def keep(text):
            nonlocal lead
            if lead is not None and text:
                if text in ("&", ";", ","):
                    return
                if lead == "(" and text[0] == ")":
                    text = text[1:]
                elif text[0] in "&;, \t\r\n":
                    text = lead + text[1:]
            if text:
                lead = None
            kept.append(text)

        for m in matches:
            if m.start() < copied or not self.is_credential(m.group(2)):
                continue
            keep(uri[copied:m.start()])
            separator = m.group(1)
            end = value_end(uri, m.end(), separator, starts, jdbc, "(" in uri[:m.start()])
            if separator == "(" and uri[end:end + 1] == ")":
                end += 1
            elif lead is None and separator in ("", "?", ":", "/", "("):
                lead = separator
            copied = end
        keep(uri[copied:])
        return "".join(kept)

    def is_credential(self, name):
        name = re.sub("%([0-9A-Fa-f]{2})", lambda m: chr(int(m.group(1), 16)), name)
        plain = re.sub("[^A-Za-z0-9]", "", name).lower()
        return any(glob(pattern, plain) for pattern in self.rules["credentialParameters"])

    def identity(self, root):
        """Return an event's ID, content digest, slot rule and identity document."""
        kind = kind_of(root)
        check(root, kind)
        place = self.place(text_at(root, "producer"))
        mask = [IDENTITY] if kind == "run" else [IDENTITY, DRIFTING, FIXED]
        document = '{"event":%s,"kind":"%s"' % (self.project(root, place, IDENTITY, mask) or "{}", kind)
        slot = None
        if kind == "run":
            slot = self.slot(root)
            document += ',"slot":' + canonical(slot)
        document += "}"
        fixed = [FIXED] if kind == "run" else []
        content = ""
        if self.project(root, place, IDENTITY, fixed) is not None:
            content = self.project(root, place, IDENTITY, [IDENTITY] + fixed)
        return {
            "version": self.version,
            "eventId": digest("event " + self.version, document),
            "content": digest("content " + self.version, content),
            "slotRule": slot["rule"] if slot else "",
            "document": document,
        }

    # The slot: the first rule that the event itself satisfies.

    def slot(self, root):
        facets, job_facets = at(root, "run", "facets"), at(root, "job", "facets")
        index = map_index(facets)
        for key in ("airflow", "airflowDagRun"):
            facet = at(facets, key)
            dag = text_at(facet, "dag", "dag_id") if is_text(at(facet, "dag", "dag_id")) else text_at(facet, "dagRun", "dag_id")
            run = text_at(facet, "dagRun", "run_id")
            task = text_at(facet, "task", "task_id")
            if not dag or not run or key == "airflow" and not task:
                continue
            slot = {"rule": "airflow", "dagId": dag, "runId": run}
            if key == "airflow":
                slot.update(taskId=task, mapIndex=index)
            return slot
        start = at(facets, "nominalTime", "nominalStartTime")
        if is_text(start) and instant(start):
            return {"rule": "nominal", "start": instant(start)}
        parent = {
            "namespace": text_at(facets, "parent", "job", "namespace"), "name": text_at(facets, "parent", "job", "name"),
            "runId": lower_uuid(text_at(facets, "parent", "run", "runId")),
        }
        if parent["name"] and parent["runId"]:
            of = self.place_under(root, job_facets, parent["name"])
            if of is not None:
                return {"rule": "place", "of": of, "parent": parent}
        return {"rule": "run", "runId": lower_uuid(text_at(root, "run", "runId")), "mapIndex": index}

    def place_under(self, root, job_facets, parent):
        """What tells a child apart under its parent, None if no rule places it."""
        job, integration = text_at(root, "job", "name"), upper(text_at(job_facets, "jobType", "integration"))
        for r in self.rules["places"]:
            if integration != r["integration"] and not glob(r["producer"], text_at(root, "producer")):
                continue
            if r["except"] and glob(r["except"], job) or r["numbered"] and not is_numbered(job, parent + r["numbered"]):
                continue
            if not r["bySql"]:
                return []
            sql = text_at(job_facets, "sql", "query")
            if sql:
                return [hashlib.sha256(sql.encode("utf-8", "surrogatepass")).hexdigest()[:48]]
        return None


def upper(text):
    # Letter by letter: no letter becomes two.
    return "".join(c.upper() if len(c.upper()) == 1 else c for c in text)


def is_numbered(name, prefix):
    rest = name[len(prefix):]
    return name.startswith(prefix) and re.fullmatch("[0-9]+", rest) is not None and int(rest[:4000]) < 1 << 32


def map_index(facets):
    for path in (("airflow", "taskInstance", "map_index"), ("airflow_mappedTask", "mapIndex")):
        value = at(facets, *path)
        if isinstance(value, Number) and re.fullmatch("[0-9]+", value) and int(value) < 1 << 63:
            return value
    return None


def lower_uuid(text):
    return text.lower() if re.fullmatch("(?i)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", text, re.ASCII) else text


def kind_of(root):
    if not isinstance(root, dict):
        raise Rejected("", "not an object")
    if "run" in root and "job" in root:
        return "run"
    if "job" in root and "dataset" not in root:
        return "job"
    if "dataset" in root and "job" not in root:
        return "dataset"
    raise Rejected("", "neither a run, nor a job, nor a dataset event")


def check(root, kind):
    """Refuse what names nothing and what has no time."""
    named = [("/dataset", at(root, "dataset"))] if kind == "dataset" else [("/job", at(root, "job"))]
    for pointer, value in named:
        require(pointer, value, "namespace", "name")
    if kind == "run":
        require("/run", at(root, "run"), "runId")
    if kind != "dataset":
        for name in ("inputs", "outputs"):
            for i, value in enumerate(at(root, name) or []):
                require("/%s/%d" % (name, i), value, "namespace", "name")
    if not instant(text_at(root, "eventTime")):
        raise Rejected("/eventTime", "not a readable time")


def require(pointer, value, *keys):
    for key in keys:
        if at(value, key) == "":
            raise Rejected(pointer + "/" + key, "an empty string names nothing")


def digest(domain, document):
    return hashlib.sha256(("graphd " + domain + "\n" + document).encode()).hexdigest()[:48]


# The command.


def events(data):
    """Split a file into the texts of its events."""
    text = data.decode("utf-8").strip(" \t\r\n\ufeff")
    if text.startswith("["):
        # Each element as it is spelled: an element alone is an event.
        decoder, i, texts = json.JSONDecoder(parse_int=str, parse_float=str), 1, []
        while True:
            i = re.compile(r"[ \t\r\n,]*").match(text, i).end()
            if text[i:] == "]":
                return texts
            _, end = decoder.raw_decode(text, i)
            texts.append(text[i:end])
            i = end
    try:
        json.loads(text, parse_int=str, parse_float=str)
        return [text]
    except ValueError:
        return [line for line in text.split("\n") if line.strip()]


def describe(contract, text):
    try:
        found = contract.identity(decode(text))
    except Rejected as no:
        return False, canonical({"rejected": no.pointer, "reason": no.reason})
    except (ValueError, RecursionError) as no:
        return False, canonical({"rejected": "", "reason": str(no)})
    document = found.pop("document")
    return True, canonical(found)[:-1] + ',"document":' + document + "}"


def check_vectors(rules, path):
    """Compare with recorded vectors; return how many differ."""
    with open(path, encoding="utf-8") as file:
        recorded = json.load(file)
    shipped, wrong, left_out = Contract(rules), 0, 0
    for vector in recorded["vectors"]:
        if "invalid-facet" in vector.get("warnings", []):
            left_out += 1
            continue
        contract = Contract(rules, vector["rules"]) if "rules" in vector else shipped
        want = {key: vector.get(key, "") for key in ("eventId", "content", "slotRule", "document", "rejected")}
        want["version"] = "" if want["rejected"] else vector.get("version", recorded["version"])
        got = dict.fromkeys(want, "")
        try:
            got.update(contract.identity(decode(vector["event"])))
        except Rejected as no:
            got["rejected"] = no.pointer
        if got != want:
            wrong += 1
            for key in want:
                if got[key] != want[key]:
                    print("%s: %s is\n  %s, want\n  %s" % (vector["name"], key, got[key], want[key]))
    print("%d vectors, %d differ, %d left out: they need the schemas" % (len(recorded["vectors"]), wrong, left_out))
    return wrong


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rules", default=os.path.join(here, "..", "docs", "identity-rules.json"),
                        help="the published rules (default: docs/identity-rules.json)")
    parser.add_argument("--check", metavar="VECTORS", help="compare with recorded vectors")
    parser.add_argument("files", nargs="*", metavar="FILE", help="files of events, - for standard input")
    args = parser.parse_args()
    sys.setrecursionlimit(20 * MAX_DEPTH)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace", newline="\n")
    with open(args.rules, encoding="utf-8") as file:
        rules = json.load(file)
    if args.check:
        return 1 if check_vectors(rules, args.check) else 0
    if not args.files:
        parser.error("no files")
    contract, all_accepted = Contract(rules), True
    for path in args.files:
        try:
            with sys.stdin.buffer if path == "-" else open(path, "rb") as file:
                texts = events(file.read())
        except (OSError, ValueError, RecursionError) as no:
            print("%s: %s" % (path, no), file=sys.stderr)
            return 2
        for text in texts:
            accepted, line = describe(contract, text)
            all_accepted = all_accepted and accepted
            print(line)
    return 0 if all_accepted else 1


if __name__ == "__main__":
    sys.exit(main())
