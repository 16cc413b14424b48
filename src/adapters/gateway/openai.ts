/** Posts to an OpenAI-compatible server. */
import { categoryOfStatus, ModelFailure, readErrorBody, retryAfterMs } from "../errors.ts";
import type { ErrorCategory, ModelProfile } from "../types.ts";
import { beginningOf, reasonOf, textOf } from "./bytes.ts";
import { eventData, MAX_REPLY_BYTES } from "./events.ts";
import type { GatewayPorts, Transport } from "./ports.ts";

const DEFAULT_BASE_URL = "https://api.openai.com/v1";
const DEFAULT_KEY = "OPENAI_API_KEY";
const MAX_ERROR_BODY = 16 * 1024;

export const openaiTransport: Transport = async function* ({ profile, body }, ports, signal) {
  const response = await post(profile, JSON.stringify(body), ports, signal);
  if (!response.ok) throw await refusal(response, profile, ports, signal);
  if (response.body === null) return;
  const type = response.headers.get("content-type") ?? "";
  if (/[/+]json\b/i.test(type)) {
    yield await textOf(response.body, signal, MAX_REPLY_BYTES);
  } else if (/^text\/html\b/i.test(type)) {
    await response.body.cancel();
    throw new ModelFailure("validation", `A web page answered instead of a model. ${check(profile)}`);
  } else {
    yield* eventData(response.body, signal);
  }
};

/** The key that a request of this profile carries. */
export function openaiKey(
  profile: ModelProfile,
  { secret }: Pick<GatewayPorts, "secret">,
): string | undefined {
  return secret(profile.apiKeySecret ?? DEFAULT_KEY)?.trim() || undefined;
}

async function post(
  profile: ModelProfile,
  body: string,
  ports: GatewayPorts,
  signal: AbortSignal,
): Promise<Response> {
  const url = `${baseUrlOf(profile)}/chat/completions`;
  const headers = {
    "content-type": "application/json",
    accept: "text/event-stream, application/json",
    ...authorization(profile, ports),
  };
  // Called without a receiver: the platform's `fetch` refuses to be a method of something else.
  const { fetch } = ports;
  try {
    // A redirect is not followed: it could take the key to another host.
    return await fetch(url, { method: "POST", headers, body, signal, redirect: "manual" });
  } catch (error) {
    signal.throwIfAborted();
    throw new ModelFailure("network", `The model server could not be reached: ${reasonOf(error)}.`);
  }
}

function baseUrlOf({ baseUrl = DEFAULT_BASE_URL }: ModelProfile): string {
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : undefined;
  const isPlain = url !== undefined && url.username + url.password + url.search + url.hash === "";
  // What is refused is not repeated: it may hold a password.
  if (!isPlain || !/^https?:$/.test(url.protocol)) {
    throw new ModelFailure(
      "validation",
      "The profile's base URL must be an HTTP address without user, password or query.",
    );
  }
  return baseUrl.replace(/\/+$/, "");
}

function authorization(profile: ModelProfile, ports: GatewayPorts): Record<string, string> {
  const name = profile.apiKeySecret ?? DEFAULT_KEY;
  const key = openaiKey(profile, ports);
  if (key === undefined) {
    if (profile.baseUrl !== undefined) return {};
    throw new ModelFailure(
      "auth",
      `There is no key: set ${name}, or a base URL of a server that needs none.`,
    );
  }
  if (!/^[\x21-\x7e]+$/.test(key)) {
    throw new ModelFailure(
      "auth",
      `The key in ${name} has characters that no header can carry. Set it anew.`,
    );
  }
  return { authorization: `Bearer ${key}` };
}

async function refusal(
  response: Response,
  profile: ModelProfile,
  ports: GatewayPorts,
  signal: AbortSignal,
): Promise<ModelFailure> {
  const { status, headers } = response;
  const text = response.body === null ? "" : await beginningOf(response.body, signal, MAX_ERROR_BODY);
  const said = readErrorBody(text);
  // A used-up quota is reported with the status of a rate limit, but waiting does not help.
  const isSpent = status === 429 && said.category === "quota";
  const isRedirect = status >= 300 && status < 400;
  const category = isSpent ? "quota" : isRedirect ? "validation" : categoryOfStatus(status);
  const wait = retryAfterMs(headers, ports.clock.now());
  const message = [
    `The model server answered ${status}${said.message === undefined ? "." : `: ${said.message}`}`,
    isRedirect ? `It redirects elsewhere. ${check(profile)}` : advice(category, profile, ports),
  ];
  return new ModelFailure(category, message.filter((part) => part !== "").join(" "), {
    status,
    ...(wait === undefined ? {} : { retryAfterMs: wait }),
  });
}

function advice(category: ErrorCategory, profile: ModelProfile, ports: GatewayPorts): string {
  const name = profile.apiKeySecret ?? DEFAULT_KEY;
  switch (category) {
    case "auth":
      return openaiKey(profile, ports) === undefined
        ? `No key was sent: set ${name}.`
        : `Check the key in ${name}.`;
    case "not_found":
      return `Check the model id "${profile.modelId}". ${check(profile)}`;
    default:
      return "";
  }
}

function check(profile: ModelProfile): string {
  return `Check the base URL ${profile.baseUrl ?? DEFAULT_BASE_URL}.`;
}
