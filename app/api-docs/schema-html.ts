/** Renders schemas for the page `/docs`. The `html` template escapes all text (DOCS-2). */
import { html } from "hono/html";
import type { HtmlEscapedString } from "hono/utils/html";
import type { oas31 } from "zod-openapi";
import { nameOfReference, type Schema } from "./example.ts";

export type Html = HtmlEscapedString | Promise<HtmlEscapedString>;

/** Renders a schema: its type, or its fields if it has any. */
export function schemaBlock(schema: Schema): Html {
  if (isReference(schema)) return html`<p class="type">${typeOf(schema)}</p>`;
  const fields = fieldsOf(schema);
  return fields === null
    ? html`<p class="type">${typeOf(schema)}${limitsOf(schema)}</p>${alternatives(schema)}`
    : fields;
}

/** Renders a field or a parameter: name, type, limits and description. `description` replaces the schema's description. */
export function field(name: string, schema: Schema, required: boolean, description?: string): Html {
  const meaning = description ?? (isReference(schema) ? undefined : schema.description);
  return html`<li><code class="name">${name}</code> <span class="type">${typeOf(schema)}</span>
${required ? html` <span class="required">required</span>` : ""}${isReference(schema) ? "" : limitsOf(schema)}
${meaning === undefined ? "" : html`<div class="meaning">${prose(meaning)}</div>`}${isReference(schema) ? "" : inner(schema)}</li>`;
}

/** Renders text; parts in backticks become code. */
export function prose(text: string): Html[] {
  return text.split("`").map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : html`${part}`));
}

function fieldsOf({ properties, required = [] }: oas31.SchemaObject): Html | null {
  if (properties === undefined) return null;
  const fields = Object.entries(properties).map(([name, member]) =>
    field(name, member, required.includes(name)),
  );
  return html`<ul class="fields">${fields}</ul>`;
}

/** Renders the fields of an object, or of the objects in a list. */
function inner(schema: oas31.SchemaObject): Html | string {
  const { items } = schema;
  if (typeof items === "object" && !isReference(items)) return fieldsOf(items) ?? alternatives(items);
  return fieldsOf(schema) ?? alternatives(schema);
}

/** Renders those members of a union that have fields. */
function alternatives({ anyOf, oneOf }: oas31.SchemaObject): Html | string {
  const blocks = (anyOf ?? oneOf ?? []).flatMap((member) => (isReference(member) ? [] : inner(member) || []));
  return blocks.length === 0 ? "" : html`${blocks}`;
}

function typeOf(schema: Schema): Html {
  if (isReference(schema)) {
    const name = nameOfReference(schema.$ref);
    return html`<a href="#schema-${name}">${name}</a>`;
  }
  const { const: only, enum: values, type, items, prefixItems, anyOf, oneOf } = schema;
  if (only !== undefined) return html`<code>${JSON.stringify(only)}</code>`;
  if (values !== undefined) return joined(values.map((value) => html`<code>${JSON.stringify(value)}</code>`));
  const members = anyOf ?? oneOf;
  if (members !== undefined) return joined(members.map(typeOf));
  if (prefixItems !== undefined) return html`list of ${joined(prefixItems.map(typeOf))}`;
  if (type === "array" && typeof items === "object") return html`list of ${typeOf(items)}`;
  if (type === undefined) return html`any`;
  return html`${Array.isArray(type) ? type.join(" | ") : type}`;
}

function joined(parts: Html[]): Html {
  return html`${parts.map((part, index) => (index === 0 ? part : html` | ${part}`))}`;
}

function limitsOf(schema: oas31.SchemaObject): Html | string {
  const { minLength, maxLength, minItems, maxItems, minimum, maximum, pattern, format } = schema;
  const limits = [
    range(minLength, maxLength, "characters"),
    range(minItems, maxItems, "items"),
    // zod writes this bound for every integer.
    range(minimum, maximum === Number.MAX_SAFE_INTEGER ? undefined : maximum, ""),
    // A format is easier to read than its pattern.
    format ?? pattern,
  ].filter((limit) => limit !== undefined);
  return limits.length === 0 ? "" : html` <span class="limits">${limits.join(", ")}</span>`;
}

function range(min: number | undefined, max: number | undefined, unit: string): string | undefined {
  const from = min === Number.MIN_SAFE_INTEGER ? undefined : min;
  if (from === undefined && max === undefined) return undefined;
  const numbers = max === undefined ? `from ${from}` : from === undefined ? `to ${max}` : `${from} to ${max}`;
  return `${numbers} ${unit}`.trim();
}

function isReference(schema: Schema): schema is oas31.ReferenceObject {
  return "$ref" in schema;
}
