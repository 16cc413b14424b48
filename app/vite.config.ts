/**
 * Builds the static files that are served beside the Worker: the console, and the page `/docs`. React has a file of its own
 * because it rarely changes.
 */
import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";
import { apiDocument } from "../src/http/openapi/document.ts";
import { OPERATIONS } from "../src/http/operations.ts";
import { docsPage } from "./api-docs/page.ts";
import { headersFile } from "./headers.ts";

/** Writes `docs.html`, which is served as `/docs`, and the `_headers` file of all pages. */
function apiDocs(): Plugin {
  return {
    name: "api-docs",
    apply: "build",
    async generateBundle() {
      const { html, styleSource } = await docsPage(apiDocument(OPERATIONS));
      this.emitFile({ type: "asset", fileName: "docs.html", source: html });
      this.emitFile({ type: "asset", fileName: "_headers", source: headersFile(styleSource) });
    },
  };
}

export default defineConfig({
  root: "app",
  plugins: [react(), tailwindcss(), apiDocs()],
  build: {
    emptyOutDir: true,
    rolldownOptions: {
      // Slow plugins are not a problem of the build.
      checks: { pluginTimings: false },
      output: {
        codeSplitting: { groups: [{ name: "react", test: /node_modules\/(react|react-dom|scheduler)\// }] },
      },
    },
  },
});
