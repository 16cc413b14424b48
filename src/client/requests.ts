/** Address and authorization of requests. */
import { defined } from "../shared/defined.ts";
import { wrongInput } from "./errors.ts";

/**
 * A bearer token, or a function that returns one, or `undefined` for requests without a token. A function is called for each request and
 * each attempt to connect.
 */
export type Token = string | (() => string | undefined | Promise<string | undefined>);

export async function currentToken(token: Token | undefined): Promise<string | undefined> {
  return typeof token === "function" ? token() : token;
}

export async function authorization(token: Token | undefined): Promise<Record<string, string>> {
  const bearer = await currentToken(token);
  return bearer === undefined ? {} : { authorization: `Bearer ${bearer}` };
}

/** Throws `INVALID_INPUT` for an address without a scheme: `fetch` would take its host for one, or for a path. */
export function checkBaseUrl(baseUrl: string | undefined): void {
  if (baseUrl === undefined || /^(?:$|\/|https?:\/\/.)/i.test(baseUrl)) return;
  const [, rest = baseUrl] =
    /^(?:\w+:)?\/*(.*)$/.exec(baseUrl.includes("://") ? baseUrl : `//${baseUrl}`) ?? [];
  throw wrongInput(
    "INVALID_INPUT",
    `\`baseUrl\` must begin with http:// or https://, and is "${baseUrl}". Write "http://${rest}".`,
  );
}

export function apiUrl(baseUrl: string | undefined, path: string): string {
  return `${(baseUrl ?? "").replace(/\/$/, "")}/api/${path}`;
}

/** Encodes segments and joins them to a path. */
export function pathOf(...segments: string[]): string {
  return segments.map(encodeURIComponent).join("/");
}

/** Returns parameters as a query. It leaves out absent parameters. A list gives one parameter per item. */
export function queryOf(parameters: Record<string, string | number | string[] | undefined>): string {
  const pairs = Object.entries(defined(parameters)).flatMap(([name, value]) =>
    [value ?? []].flat().map((one) => [name, String(one)]),
  );
  return pairs.length === 0 ? "" : `?${new URLSearchParams(pairs)}`;
}
