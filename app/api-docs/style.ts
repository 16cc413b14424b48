/** The style of the page `/docs`, light and dark. The page's policy contains its hash. */
export const STYLE = `
:root { color-scheme: light dark;
  --ground: light-dark(#ffffff, #14161a); --raised: light-dark(#f6f7f9, #1c1f25);
  --line: light-dark(#e3e6eb, #2c313a); --text: light-dark(#1b1f26, #e4e7ec);
  --quiet: light-dark(#5c6573, #9aa3b2); --accent: light-dark(#2456c9, #8ab0ff);
  --get: light-dark(#1c6b3f, #6fd39b); --post: light-dark(#2456c9, #8ab0ff);
  --patch: light-dark(#8a5300, #f0b866); --delete: light-dark(#b3261e, #ff9a92); }
* { box-sizing: border-box; }
html { scroll-padding-top: 1rem; scroll-behavior: smooth; }
body { margin: 0; display: grid; grid-template-columns: 18rem minmax(0, 1fr); background: var(--ground); color: var(--text);
  font: 16px/1.6 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
a { color: var(--accent); text-decoration: none; }
a:hover { text-decoration: underline; }
a:focus-visible, summary:focus-visible, pre:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 4px; }
code { font: 0.875em/1.5 ui-monospace, "SF Mono", Menlo, Consolas, monospace; overflow-wrap: anywhere; }
nav { position: sticky; top: 0; height: 100vh; overflow-y: auto; padding: 1.5rem 1.25rem; border-right: 1px solid var(--line); background: var(--raised); font-size: 0.875rem; }
nav .home { font-size: 1.125rem; font-weight: 700; color: var(--text); }
nav h2 { margin: 1.25rem 0 0.25rem; font-size: 0.75rem; letter-spacing: 0.06em; text-transform: uppercase; }
nav h2 a { color: var(--quiet); }
nav ul { list-style: none; margin: 0; padding: 0; }
nav li a { display: flex; gap: 0.5rem; align-items: baseline; padding: 0.2rem 0; color: var(--text); line-height: 1.35; }
nav .method { flex: none; width: 2.9rem; font-size: 0.6875rem; }
main { max-width: 56rem; padding: 2.5rem clamp(1rem, 4vw, 3.5rem) 6rem; }
h1 { margin: 0 0 1rem; font-size: 2rem; line-height: 1.2; letter-spacing: -0.02em; }
h1 small { color: var(--quiet); font-size: 0.9rem; font-weight: 400; letter-spacing: 0; }
.group { margin-top: 3.5rem; }
.group > h2 { margin: 0; font-size: 1.5rem; letter-spacing: -0.01em; text-transform: capitalize; }
.group > h2 + p { margin-top: 0.25rem; color: var(--quiet); }
article { margin-top: 1.25rem; padding: 1.25rem 1.5rem 1.5rem; border: 1px solid var(--line); border-radius: 12px; scroll-margin-top: 1rem; }
article:target { border-color: var(--accent); }
article h3 { margin: 0; font-size: 1.125rem; line-height: 1.35; }
article h4 { margin: 1.5rem 0 0.5rem; font-size: 0.75rem; letter-spacing: 0.06em; text-transform: uppercase; color: var(--quiet); }
.route { margin: 0.5rem 0; padding: 0.5rem 0.75rem; border-radius: 8px; background: var(--raised); }
.method { font: 700 0.8125rem/1.5 ui-monospace, "SF Mono", Menlo, Consolas, monospace; text-transform: uppercase; }
.get { color: var(--get); } .post { color: var(--post); } .put, .patch { color: var(--patch); } .delete { color: var(--delete); }
.fields { list-style: none; margin: 0; padding: 0; }
.fields li { padding: 0.5rem 0; border-top: 1px solid var(--line); }
.fields li:first-child { border-top: 0; }
.fields .fields { margin: 0.25rem 0 0 0.25rem; padding-left: 0.9rem; border-left: 2px solid var(--line); }
.name { font-weight: 700; }
.type { color: var(--quiet); font-size: 0.875rem; overflow-wrap: anywhere; }
.required { color: var(--delete); font-size: 0.75rem; }
.limits { color: var(--quiet); font-size: 0.8125rem; overflow-wrap: anywhere; }
.meaning { font-size: 0.9375rem; }
.response, summary { margin: 0; padding: 0.4rem 0; font-size: 0.9375rem; }
summary { cursor: pointer; }
details[open] { margin-bottom: 0.75rem; padding: 0 1rem 1rem; border: 1px solid var(--line); border-radius: 8px; }
.status { display: inline-block; min-width: 2.5rem; font: 700 0.8125rem/1.5 ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
.success { color: var(--get); } .error { color: var(--delete); }
pre { margin: 0.75rem 0 0; padding: 0.75rem 1rem; overflow-x: auto; border-radius: 8px; background: var(--raised); }
pre code { overflow-wrap: normal; }
@media (max-width: 52rem) {
  html { scroll-padding-top: 4rem; }
  body { display: block; }
  nav { z-index: 1; display: flex; gap: 1.25rem; align-items: baseline; height: auto; padding: 0.75rem 1rem; overflow-x: auto; border-right: 0; border-bottom: 1px solid var(--line); }
  nav ul { display: none; }
  nav h2 { margin: 0; }
  main { padding-top: 1.5rem; }
  article { padding: 1rem; scroll-margin-top: 4rem; }
}
@media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto; } }
`;
