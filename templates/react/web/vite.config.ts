import { join } from "node:path";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// The console is at /, and the page of the folder `app` at /app/.
export default defineConfig({
  plugins: [react()],
  publicDir: join(import.meta.dirname, "../node_modules/dramatis/console"),
  build: {
    outDir: join(import.meta.dirname, "../public"),
    emptyOutDir: true,
    rolldownOptions: { input: join(import.meta.dirname, "app/index.html") },
  },
});
