/** Definitions that tests post. */
import { expect } from "vitest";
import { request } from "./world.ts";

/** Posts a tool to a library; returns its reference. */
export async function postTool(
  library: string,
  id: string,
  target: object,
  more: object = {},
): Promise<string> {
  const body = JSON.stringify({ id, name: id, description: "Asks.", target, ...more });
  const response = await request(`/api/libraries/${library}/tools`, { method: "POST", body });
  expect(response.status, await response.clone().text()).toBe(201);
  return `${library}/${id}`;
}
