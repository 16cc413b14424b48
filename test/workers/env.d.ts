/** Bindings of `test/wrangler.jsonc` that exist only in tests. */
declare namespace Cloudflare {
  interface Env {
    PortHost: DurableObjectNamespace<import("./worker.ts").PortHost>;
    PlainSessionAgent: DurableObjectNamespace<import("./worker.ts").PlainSessionAgent>;
  }
}
