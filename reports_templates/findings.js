"use strict";
(() => {
  const FIELDS = ["text", "policy", "namespace", "owner", "severity", "action", "status", "sort", "workload"];
  const NUMBERS = 9, ROWS = 100, NEAR = 2;
  const CHIP = 0, ACTION = 1, SEVERITY = 2, STATUS = 3, POLICY = 4, OPENED = 5, WAIVED = 6, NAMESPACE = 7, OWNER = 8;
  const filter = document.querySelector(".filter"), found = document.querySelector(".found");
  const table = document.querySelector(".problems"), body = table.tBodies[0], caption = table.caption;
  const above = document.querySelector(".above"), below = document.querySelector(".below");
  const parts = document.querySelector("#parts").content;
  const written = { rows: [...body.childNodes], caption: caption.textContent, above: [...above.childNodes], below: [...below.childNodes] };
  const field = Object.fromEntries(FIELDS.map((name) => [name, filter.querySelector(`[name=${name}]`)]));
  let index = null, chunks = [], loaded = 0, asked = false, lost = false, timer = 0;

  const element = (name, attributes, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };
  const part = (name) => {
    const kept = parts.querySelector(`[data-part="${name}"]`);
    return kept ? [...kept.cloneNode(true).childNodes] : [];
  };
  const quiet = (text) => element("span", { class: "quiet" }, text);
  const load = (path) => document.head.append(Object.assign(document.createElement("script"), { src: path, onerror: failed }));
  const tell = (words) => {
    caption.textContent = words;
    found.textContent = words;
  };

  function failed() {
    lost = true;
    if (!state().any) return restore();
    return tell("The filter of this address is not applied: the folder “data” of the report is not beside this page. These are rows of the whole list.");
  }

  window.assay = {
    index(data) {
      index = data;
      options("policy", data.policies.map(([name]) => [name, name]));
      options("namespace", data.namespaces.map((name) => [name || "_cluster", name || "cluster-scoped objects"]));
      options("owner", data.owners.map((name) => [name || "unowned", name || "unowned"]));
      filter.hidden = false;
      show();
    },
    rows(number, numbers, lines, said, messages) {
      const texts = lines.split("\n");
      chunks[number] = {
        numbers: Int32Array.from(numbers), texts, search: lines.toLowerCase().split("\n"),
        said: said.split("\n"), messages: messages.split("\n"),
      };
      loaded += 1;
      if (loaded === index.chunks) show();
    },
  };

  function options(name, values) {
    const select = field[name];
    for (const [value, text] of [...values].sort((a, b) => (a[1] < b[1] ? -1 : 1))) {
      select.append(element("option", { value }, text));
    }
  }

  function state() {
    const given = new URLSearchParams(location.hash.slice(1));
    const values = Object.fromEntries(FIELDS.map((name) => [name, given.get(name) || ""]));
    return { ...values, page: Math.max(1, parseInt(given.get("page"), 10) || 1), any: FIELDS.some((name) => values[name]) };
  }

  function address(values, page) {
    const kept = FIELDS.filter((name) => values[name]).map((name) => [name, values[name]]);
    if (page > 1) kept.push(["page", page]);
    return "#" + new URLSearchParams(kept);
  }

  function chosen() {
    return Object.fromEntries(FIELDS.map((name) => [name, field[name].value]));
  }

  function show() {
    if (lost) return failed();
    if (!index || document.getElementById(location.hash.slice(1))) return undefined;
    const wanted = state();
    for (const name of FIELDS) {
      if (field[name] === document.activeElement && name === "text") continue;
      if (field[name].options && ![...field[name].options].some(({ value }) => value === wanted[name])) {
        field[name].append(element("option", { value: wanted[name] }, wanted[name]));
      }
      field[name].value = wanted[name];
    }
    field.workload.parentElement.hidden = !wanted.workload;
    if (!wanted.any && wanted.page === 1) return restore();
    if (!asked) {
      asked = true;
      for (let number = 0; number < index.chunks; number += 1) load(`data/${String(number).padStart(4, "0")}.js`);
    }
    if (loaded < index.chunks) {
      return tell("Loading the findings …");
    }
    return render(wanted, ordered(matching(wanted), wanted.sort));
  }

  // As Python's fnmatch: a name that has the characters of a glob is chosen by itself.
  function glob(wanted) {
    const pattern = wanted.replace(/[\\^$.|+(){}]/g, "\\$&").replace(/\[!/g, "[^").replace(/\*/g, ".*").replace(/\?/g, ".");
    let form = null;
    try {
      form = new RegExp(`^(?:${pattern})$`, "su");
    } catch {
      form = /$^/;
    }
    return (name) => name === wanted || form.test(name);
  }

  function restore() {
    body.replaceChildren(...written.rows);
    caption.textContent = written.caption;
    above.replaceChildren(...written.above);
    below.replaceChildren(...written.below);
    found.textContent = "";
  }

  function matching(wanted) {
    const words = wanted.text.toLowerCase().split(/\s+/).filter(Boolean);
    const rules = index.policies.map(([name, title]) => `${name} ${title}`.toLowerCase());
    const owners = index.owners.map((name) => name.toLowerCase());
    const inRule = words.map((word) => rules.map((text) => text.includes(word)));
    const ofOwner = words.map((word) => owners.map((text) => text.includes(word)));
    const tests = conditions(wanted), workload = ofWorkload(wanted.workload);
    const rows = [];
    chunks.forEach((chunk, place) => {
      const { numbers, search, texts } = chunk;
      const saying = words.length ? rowsThatSay(chunk, words) : [];
      next: for (let row = 0; row < search.length; row += 1) {
        const at = row * NUMBERS;
        for (const test of tests) if (!test(numbers, at)) continue next;
        for (let word = 0; word < words.length; word += 1) {
          if (!search[row].includes(words[word]) && !saying[word][row] && !inRule[word][numbers[at + POLICY]] && !ofOwner[word][numbers[at + OWNER]]) continue next;
        }
        if (workload && !workload(...texts[row].split("\t", 3).slice(1))) continue;
        rows.push(place * index.size + row);
      }
    });
    return rows;
  }

  // For each word, the rows with a message that has it: a chunk has each message once.
  function rowsThatSay(chunk, words) {
    const messages = chunk.messages.map((message) => message.toLowerCase());
    chunk.numbersOfMessages ??= chunk.said.map((line) => line.split(","));
    return words.map((word) => {
      const has = messages.map((message) => message.includes(word));
      return has.includes(true) ? chunk.numbersOfMessages.map((numbers) => numbers.some((number) => has[number])) : [];
    });
  }

  function ofWorkload(wanted) {
    if (!wanted) return null;
    const at = wanted.indexOf(" "), end = at < 0 ? wanted.indexOf("/") : at;
    const kind = wanted.slice(0, Math.max(end, 0)).toLowerCase(), name = glob(wanted.slice(end + 1));
    return (own, path) => own.toLowerCase() === kind && name(at < 0 ? path.slice(path.lastIndexOf("/") + 1) : path);
  }

  function conditions(wanted) {
    const tests = [];
    const equal = (column, value) => tests.push((numbers, at) => numbers[at + column] === value);
    const among = (column, names, matches) => {
      const chosen = names.map(matches);
      tests.push((numbers, at) => chosen[numbers[at + column]]);
    };
    const policy = glob(wanted.policy), namespace = glob(wanted.namespace), owner = glob(wanted.owner);
    if (wanted.policy) among(POLICY, index.policies, ([name, title]) => [name, name.replace(/ \(\w+\)$/, ""), title].some(policy));
    if (wanted.namespace) among(NAMESPACE, index.namespaces, (name) => (wanted.namespace === "_cluster" ? !name : namespace(name)));
    if (wanted.owner) among(OWNER, index.owners, (name) => (wanted.owner === "unowned" ? !name : name && owner(name)));
    if (wanted.severity) equal(SEVERITY, index.severities.indexOf(wanted.severity));
    const chip = (...names) => {
      const chips = names.map((name) => index.chips.indexOf(name));
      tests.push((numbers, at) => chips.includes(numbers[at + CHIP]));
    };
    const status = (...names) => {
      const statuses = names.map((name) => index.statuses.indexOf(name));
      tests.push((numbers, at) => statuses.includes(numbers[at + STATUS]));
    };
    const counted = (...names) => {
      const excepted = index.chips.indexOf("excepted");
      status(...names);
      tests.push((numbers, at) => !numbers[at + WAIVED] && numbers[at + CHIP] !== excepted);
    };
    const actions = {
      refused: () => chip("deny", "refused-error") || counted("new", "open", "reopened"),
      Errored: () => chip("refused-error", "error", "preview-refused-error", "preview-error"),
      change: () => chip("drift", "preview-drift"),
    };
    const statuses = {
      unresolved: () => status(...index.statuses.filter((name) => name !== "resolved")),
      open: () => counted("new", "open", "reopened"),
      new: () => counted("new"),
      reopened: () => counted("reopened"),
      waived: () => equal(WAIVED, 1),
      excepted: () => chip("excepted"),
    };
    if (wanted.action) (actions[wanted.action] || (() => equal(ACTION, index.actions.indexOf(wanted.action))))();
    if (wanted.status) (statuses[wanted.status] || (() => status(wanted.status)))();
    return tests;
  }

  const number = (row, column) => chunks[Math.floor(row / index.size)].numbers[(row % index.size) * NUMBERS + column];
  const said = (row) => {
    const chunk = chunks[Math.floor(row / index.size)];
    return chunk.said[row % index.size].split(",").map((message) => chunk.messages[message]);
  };
  const line = (row) => chunks[Math.floor(row / index.size)].texts[row % index.size];

  function ordered(rows, by) {
    const keys = {
      oldest: (row) => number(row, OPENED),
      newest: (row) => -number(row, OPENED),
      severity: (row) => number(row, SEVERITY),
      workload: (row) => line(row).split("\t", 3)[2],
      policy: (row) => index.policies[number(row, POLICY)][1],
      owner: (row) => index.owners[number(row, OWNER)] || "\uffff",
    };
    if (!keys[by]) return rows;
    return rows.map((row) => [keys[by](row), row]).sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : a[1] - b[1])).map((pair) => pair[1]);
  }

  function render(wanted, rows) {
    const last = Math.max(1, Math.ceil(rows.length / ROWS)), page = Math.min(wanted.page, last);
    const first = (page - 1) * ROWS, shown = rows.slice(first, first + ROWS);
    body.replaceChildren(...joined(shown));
    tell(rows.length ? `Rows ${count(first + 1)} to ${count(first + shown.length)} of ${count(rows.length)} that match` : "No row matches");
    above.replaceChildren(...pager(wanted, page, last, "Pages, above the list"));
    below.replaceChildren(...pager(wanted, page, last, "Pages, below the list"));
  }

  const count = (value) => value.toLocaleString("en-US");

  function age(row) {
    const minutes = Math.max(0, index.end - number(row, OPENED));
    if (minutes >= 1440) return `${count(Math.floor(minutes / 1440))} d`;
    return minutes >= 60 ? `${Math.floor(minutes / 60)} h` : `${minutes} min`;
  }

  const place = (id) => `f/${id.slice(0, 3)}.html#f-${id}`;
  const cell = (name, ...children) => element("td", { role: "cell", class: `k-${name}` }, ...children);

  // As `mark_workloads`: the problems of a workload stand together.
  function joined(rows) {
    const made = [];
    let first = null, workload = "", ids = 0;
    const close = () => ids > 1 && first.querySelector(".k-what").append(element("span", { class: "of quiet" }, `${count(ids)} problems here`));
    for (const row of rows) {
      const [, kind, name, members] = line(row).split("\t", 4), own = `${kind}\t${name}`;
      const next = rowOf(row), goes = own === workload;
      if (goes) next.className = "same";
      else {
        close();
        [first, workload, ids] = [next, own, 0];
      }
      ids += /^objects (?!1 )/.test(members) ? 0 : 1;
      made.push(next);
    }
    close();
    return made;
  }

  function rowOf(row) {
    const [id, kind, name, members, check, ...objects] = line(row).split("\t");
    const [message, ...others] = said(row);
    const [, title, path] = index.policies[number(row, POLICY)];
    const chip = index.chips[number(row, CHIP)];
    const severity = index.severities[number(row, SEVERITY)], owner = index.owners[number(row, OWNER)];
    const rule = element("span", { class: "quiet" }, element("a", { class: "k-rule", href: path }, element("bdi", {}, title)));
    if (check) rule.append(" ", element("bdi", { class: "check" }, check));
    const folded = objects.length ? [element("details", {}, element("summary", {}, members), element("ul", { class: "objects" }, ...items(objects, others)))] : [];
    return element(
      "tr", { role: "row" },
      cell("action", ...part(`chip-${chip}`)),
      cell("sev", element("span", { class: `sev sev-${severity}` }, severity)),
      element("th", { scope: "row", role: "rowheader", class: "k-what" }, quiet(`${kind} `), element("bdi", {}, name)),
      cell("say", element("a", { href: place(id) }, element("bdi", {}, message)), " ", rule, ...folded),
      cell("owner", owner ? element("bdi", {}, owner) : quiet("unowned")),
      cell("age", ...(chip === "resolved" ? [] : part(`status-${index.statuses[number(row, STATUS)]}`)), ...(number(row, WAIVED) ? part("status-waived") : []), " ", element("time", {}, age(row))),
      cell("id", element("a", { class: "fid", href: place(id) }, id)),
    );
  }

  function items(objects, messages) {
    const made = [];
    for (let at = 0; at + 2 < objects.length; at += 3) {
      const [id, status, name] = objects.slice(at, at + 3);
      made.push(element("li", {}, element("a", { href: place(id) }, element("bdi", {}, name)), " ", ...part(`status-${status}`), " ", quiet(messages[at / 3])));
    }
    return made;
  }

  function pager(wanted, page, last, label) {
    if (last === 1) return [];
    const list = element("ol", {});
    let before = 0;
    for (let at = 1; at <= last; at += 1) {
      if (at !== 1 && at !== last && Math.abs(at - page) > NEAR) continue;
      if (at > before + 1) list.append(element("li", { "aria-hidden": "true" }, "…"));
      const current = at === page ? { "aria-current": "page" } : {};
      list.append(element("li", {}, element("a", { href: address(wanted, at), ...current }, element("span", { class: "sr" }, "Page "), count(at))));
      before = at;
    }
    return [element("nav", { class: "numbers", "aria-label": label }, list)];
  }

  const changed = () => location.replace(address(chosen(), 1));
  filter.addEventListener("change", changed);
  field.text.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(changed, 120);
  });
  filter.querySelector("button").addEventListener("click", () => {
    for (const name of FIELDS) field[name].value = "";
    changed();
    field.text.focus();
  });
  window.addEventListener("hashchange", show);
  load("data/index.js");
})();
