/** Runs the offline model at the pace that the request asks for. */
import { offlineModel } from "../formats/offline/model.ts";
import type { Transport } from "./ports.ts";

export const offlineTransport: Transport = async function* ({ body }, { clock }, attempt) {
  yield { response: {} };
  const pause = (milliseconds: number) => clock.sleep(milliseconds, attempt.signal);
  for await (const data of offlineModel(body, pause)) {
    attempt.received();
    yield { payloads: [data] };
  }
};
