/** Loads the input of a workflow: the fields of its JSON Schema. */
import { useEffect, useState } from "react";
import { isJsonObject, type JsonObject } from "../../../src/shared/json.ts";
import { callApi } from "../api.ts";
import { type GateField, inputFields } from "../runs/gate-form.ts";

/** `library/id`, or `library/id@version`. */
const NAME = /^([\w-]+)\/([\w-]+)(?:@(\d+))?$/;

/** Returns the fields; `undefined` until they are loaded, and if `known` does not contain the workflow, or if it has no members. */
export function useWorkflowInput(name: string, known: readonly string[]): readonly GateField[] | undefined {
  const [found, setFound] = useState<{ name: string; fields: readonly GateField[] | undefined }>();
  const isKnown = known.includes(name.replace(/@.*$/, ""));
  useEffect(() => {
    const [, library = "", id = "", version] = NAME.exec(name) ?? [];
    if (!isKnown) return;
    const controller = new AbortController();
    const path = `libraries/${library}/workflows/${id}${version === undefined ? "" : `/versions/${version}`}`;
    callApi<{ definition: { inputSchema?: JsonObject } }>(path, { signal: controller.signal }).then(
      ({ definition: { inputSchema = {} } }) => {
        const members = isJsonObject(inputSchema.properties) ? Object.keys(inputSchema.properties) : [];
        setFound({ name, fields: members.length === 0 ? undefined : inputFields(inputSchema) });
      },
      // The start reports the error.
      () => undefined,
    );
    return () => controller.abort();
  }, [name, isKnown]);
  return found?.name === name ? found.fields : undefined;
}
