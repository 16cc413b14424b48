/** Runs one seed of the trees. */
import { isDeath } from "../../../src/testing/world/mortal-actor.ts";
import { violationsOf } from "./check.ts";
import { planTree } from "./plan.ts";
import { type Defect, TreeWorld } from "./world.ts";

/** Returns the problems of a tree of calls. */
export async function simulateTree(seed: number, defect?: Defect): Promise<string[]> {
  const world = new TreeWorld(planTree(seed), defect);
  const log = console.error;
  // Crashes are reported there, and defects.
  console.error = (...reported: unknown[]) => {
    const error = reported.find((one) => one instanceof Error);
    if (!isDeath(error)) world.log.push(`reported: ${error?.stack ?? reported.join(" ")}`);
  };
  try {
    await world.run();
    return violationsOf(world);
  } catch (error) {
    return [error instanceof Error ? (error.stack ?? error.message) : String(error)];
  } finally {
    console.error = log;
    for (const { database } of world.actors.values()) database.close();
  }
}
