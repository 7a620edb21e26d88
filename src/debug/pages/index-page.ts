import type { DebugPage } from "./page.ts";

/** `/debug`: the list of pages. */
export function indexPage(pages: readonly DebugPage[]): string {
  const rows = pages.map(({ path, help }) => `<tr><td><a href="${path}?pretty">${path}</a></td><td>${help}</td></tr>`);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Control plane</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; margin: 3rem auto; max-width: 50rem; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
td { border-top: 1px solid #ccc; padding: .4rem .8rem .4rem 0; }
code, a { font-family: ui-monospace, monospace; }
</style>
</head>
<body>
<h1>Control plane</h1>
<p>Each page is JSON; <code>?pretty</code> indents it.</p>
<table>
${rows.join("\n")}
</table>
</body>
</html>
`;
}
