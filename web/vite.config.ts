/// <reference types="vitest/config" />
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

const server = process.env.PENSTOCK_SERVER ?? "http://127.0.0.1:8080";

/** Writes `file.gz` beside each text file, so that the server need not compress anything. */
function compressed(): Plugin {
  let directory = "";
  return {
    name: "compressed",
    apply: "build",
    configResolved(config) {
      directory = join(config.root, config.build.outDir);
    },
    writeBundle() {
      for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
        if (entry.isFile() && /\.(js|css|svg|json|html)$/.test(entry.name)) {
          const path = join(entry.parentPath, entry.name);
          writeFileSync(`${path}.gz`, gzipSync(readFileSync(path), { level: 9 }));
        }
      }
    },
  };
}

export default defineConfig({
  base: "/ui/",
  resolve: { alias: { "#": new URL("./src", import.meta.url).pathname } },
  plugins: [react(), compressed()],
  build: {
    outDir: "../penstock/ui",
    emptyOutDir: true,
    target: "es2022",
    chunkSizeWarningLimit: 1500, // the grid; it loads on demand
  },
  server: {
    port: 5173,
    strictPort: true,
    fs: { allow: [".."] }, // the templates are in examples/
    proxy: { "^/(?!ui/)": { target: server } },
  },
  test: {
    maxWorkers: "100%", // by default one core is left idle
    testTimeout: 30_000, // finding things by role is slow in jsdom on a busy machine
    retry: 1, // a busy machine may be too slow once; the report names such tests
    css: false,
    // What shows nothing needs no page, which takes longer to make than to test in.
    projects: [
      {
        extends: true,
        test: { name: "logic", include: ["src/**/*.test.ts"], setupFiles: "./src/test/address.ts" },
      },
      {
        extends: true,
        test: {
          name: "components",
          include: ["src/**/*.test.tsx"],
          environment: "jsdom",
          setupFiles: "./src/test/setup.ts",
        },
      },
    ],
  },
});
