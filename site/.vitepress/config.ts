/** The site of the documentation. `scripts/build-site.ts` writes its pages. */
import { defineConfig } from "vitepress";
import { slugOf } from "../../scripts/doc-links.ts";
import { SECTIONS } from "../../scripts/site-structure.ts";

export default defineConfig({
  title: "Dramatis",
  description: "An actor runtime for AI agents on Cloudflare",
  srcDir: "source",
  outDir: "../dist/site",
  cacheDir: "node_modules/.cache/vitepress",
  cleanUrls: false,
  markdown: { anchor: { slugify: slugOf } },
  themeConfig: {
    outline: [2, 3],
    search: { provider: "local" },
    sidebar: SECTIONS.map(({ title, pages }) => ({
      text: title,
      collapsed: false,
      items: pages.map((page) => ({ text: page.title, link: page.name === "index" ? "/" : `/${page.name}` })),
    })),
  },
});
