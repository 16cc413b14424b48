/**
 * Sends spans to a collector of OpenTelemetry, over HTTP.
 *
 * OTLP-2  The headers of the configuration, which may hold a key, go to the collector's own address only: a redirect is a failure. No
 *         message of an error has them.
 */
import type { SpanExporter } from "../../model/span.ts";
import { invalid } from "../../shared/errors.ts";
import { otlpBody } from "./otlp.ts";

/** Variables of the environment, as OpenTelemetry names them; a blank one counts as absent. */
export interface TelemetryEnvironment {
  /** The collector. Spans are sent to its path `/v1/traces`. Without this address and the next, spans are not exported. */
  OTEL_EXPORTER_OTLP_ENDPOINT?: string;
  /** The whole address for spans. Takes precedence over the collector. */
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT?: string;
  /** Headers of each request: `name=value`, separated by commas, with values percent-encoded. */
  OTEL_EXPORTER_OTLP_HEADERS?: string;
  /** `service.name` of the spans. Default: `dramatis`. */
  OTEL_SERVICE_NAME?: string;
}

export interface OtlpOptions {
  /** The address that takes the spans. */
  url: string;
  headers?: Readonly<Record<string, string>>;
  /** Default: `dramatis`. */
  serviceName?: string;
  /** Default: the platform's own. */
  fetch?: (url: string, init: RequestInit) => Promise<Response>;
}

/**
 * Creates an exporter that posts OTLP as JSON.
 *
 * @example otlpExporter({ url: "https://collector.example/v1/traces", headers: { authorization: `Bearer ${key}` } })
 */
export function otlpExporter({
  url,
  headers = {},
  serviceName = "dramatis",
  ...ports
}: OtlpOptions): SpanExporter {
  const post = ports.fetch ?? ((address, init) => fetch(address, init));
  return {
    async export(spans, signal) {
      const response = await post(url, {
        method: "POST",
        headers: { ...headers, "content-type": "application/json" },
        body: JSON.stringify(otlpBody(spans, serviceName)),
        redirect: "manual",
        signal,
      });
      await response.body?.cancel();
      if (!response.ok) throw new Error(`The collector answered ${response.status}.`);
    },
  };
}

/** Creates the exporter from the environment, or returns `undefined` without a collector. Throws `INVALID_INPUT` for invalid values. */
export function exporterOf(env: TelemetryEnvironment): SpanExporter | undefined {
  const base = read(env, "OTEL_EXPORTER_OTLP_ENDPOINT");
  const own = read(env, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
  if (own === "" && base === "") return undefined;
  const name = own === "" ? "OTEL_EXPORTER_OTLP_ENDPOINT" : "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
  const url = own === "" ? `${base.replace(/\/+$/, "")}/v1/traces` : own;
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw invalid(`${name} must be the address of a collector, such as https://collector.example.`);
  const serviceName = read(env, "OTEL_SERVICE_NAME");
  return otlpExporter({ url, headers: headersOf(env), ...(serviceName === "" ? {} : { serviceName }) });
}

function headersOf(env: TelemetryEnvironment): Record<string, string> {
  const headers = new Headers();
  for (const pair of read(env, "OTEL_EXPORTER_OTLP_HEADERS").split(",")) {
    if (pair.trim() === "") continue;
    const at = pair.indexOf("=");
    try {
      if (at < 1) throw new Error("There is no name.");
      headers.set(pair.slice(0, at).trim(), decodeURIComponent(pair.slice(at + 1).trim()));
    } catch {
      // The value may be a secret: the message does not repeat it.
      throw invalid(
        "OTEL_EXPORTER_OTLP_HEADERS must be `name=value` pairs, separated by commas, with values percent-encoded.",
      );
    }
  }
  return Object.fromEntries(headers);
}

function read(env: TelemetryEnvironment, name: keyof TelemetryEnvironment): string {
  return env[name]?.trim() ?? "";
}
