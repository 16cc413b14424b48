/** Loads modules of a project in Node. */
import nodeModule from "node:module";

/** Loads TypeScript as bundlers do: always as ES modules, and also if an import lacks the extension `.ts`. */
export async function asBundled<Value>(load: () => Promise<Value>): Promise<Value> {
  // Node 22.14 lacks `registerHooks`.
  const hooks: { deregister(): void } | undefined = nodeModule.registerHooks?.({
    resolve(specifier, context, next) {
      const found = resolved(specifier, (name) => next(name, context));
      const isOwn = /\.ts$/.test(found.url) && !found.url.includes("/node_modules/");
      return isOwn ? { ...found, format: "module-typescript" } : found;
    },
  });
  try {
    return await load();
  } finally {
    hooks?.deregister();
  }
}

function resolved<Found>(specifier: string, next: (name: string) => Found): Found {
  try {
    return next(specifier);
  } catch (error) {
    if (!/^\.{1,2}\//.test(specifier) || /\.[cm]?[jt]s$/.test(specifier)) throw error;
    return next(`${specifier}.ts`);
  }
}
