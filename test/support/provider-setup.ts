/** Runs the scripted provider for the tests on workerd, which reach it over loopback. */
import type { TestProject } from "vitest/node";
import { startScriptedProvider } from "./scripted-provider.ts";

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const provider = await startScriptedProvider();
  project.provide("providerUrl", provider.baseUrl);
  project.provide("providerControlUrl", provider.controlUrl);
  return () => provider.close();
}

declare module "vitest" {
  interface ProvidedContext {
    providerUrl: string;
    providerControlUrl: string;
  }
}
