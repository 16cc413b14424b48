/** The offline model, at the pace it asks for. */
import { offlineModel } from "../offline/model.ts";
import type { Transport } from "./ports.ts";

export const offlineTransport: Transport = ({ body }, { clock }, signal) =>
  offlineModel(body, (milliseconds) => clock.sleep(milliseconds, signal));
