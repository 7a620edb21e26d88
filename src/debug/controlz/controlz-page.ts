interface Named {
  readonly prefix: string;
  readonly title: string;
}

const LEVELS = ["none", "error", "warn", "info", "debug"];

/** A topic for people: a menu, and its content as a table. */
export function topicPage(topics: readonly Named[], { prefix, title }: Named, content: unknown): string {
  const menu = topics.map(
    (topic) => `<a href="/${topic.prefix}z"${topic.prefix === prefix ? ' class="here"' : ""}>${topic.title}</a>`,
  );
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>ControlZ: ${title}</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; }
nav a { margin-right: 1rem; } nav a.here { font-weight: bold; }
table { border-collapse: collapse; width: 100%; }
td, th { border-top: 1px solid #ccc; padding: .3rem .8rem .3rem 0; text-align: left; overflow-wrap: anywhere; }
</style>
</head>
<body>
<nav>${menu.join("\n")}</nav>
<h1>${title}</h1>
${table(content)}
${prefix === "scope" ? SCOPE_SCRIPT : ""}
</body>
</html>
`;
}

function table(content: unknown): string {
  if (Array.isArray(content)) return listTable(content);
  const rows = Object.entries(Object(content)).map(
    ([name, value]) => `<tr><th>${escaped(name)}</th>${cell(value)}</tr>`,
  );
  return `<table>${rows.join("\n")}</table>`;
}

function listTable(items: readonly unknown[]): string {
  const rows = items.map((item) => {
    const cells = typeof item === "object" && item !== null ? Object.entries(item).map(levelCell) : [cell(item)];
    return `<tr>${cells.join("")}</tr>`;
  });
  return `<table>${rows.join("\n")}</table>`;
}

/** A level can be chosen. */
function levelCell([name, value]: [string, unknown]): string {
  if (name !== "output_level") return cell(value);
  const options = LEVELS.map((level) => `<option${level === value ? " selected" : ""}>${level}</option>`);
  return `<td><select>${options.join("")}</select></td>`;
}

const SCOPE_SCRIPT = `<script>
for (const select of document.querySelectorAll("select")) {
  select.onchange = async () => {
    const path = "/scopej/" + encodeURIComponent(select.closest("tr").cells[0].textContent);
    const info = await (await fetch(path)).json();
    await fetch(path, { method: "PUT", body: JSON.stringify({ ...info, output_level: select.value }) });
  };
}
</script>`;

function cell(value: unknown): string {
  return `<td>${escaped(typeof value === "object" ? JSON.stringify(value) : String(value))}</td>`;
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
