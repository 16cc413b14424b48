/**
 * The HTTP of a test app: a function of the test answers the requests of `http.request` actions.
 *
 * TESTHTTP-1  A test app sends no request of an action. A request without a scripted answer fails, and `onMissing` takes the problem.
 * TESTHTTP-2  The first request of an action is recorded as its effect. Redirects belong to this effect.
 */
import type { SendHttp } from "../../agents/executor/actions/http-request.ts";
import type { ToolContext } from "../../library/define/define.ts";
import { ToolError } from "../../library/tools/tool-error.ts";
import type { HttpRequestAction } from "../../protocol/task-definition.ts";
import { defined } from "../../shared/defined.ts";
import type { EffectRecorder } from "./tool-runs.ts";

/** Answers a request. `undefined`: the test has no answer. An error counts as a lost answer. */
export type HttpAnswer = (request: Request) => Response | undefined | Promise<Response | undefined>;

export function scriptedHttp(
  answer: HttpAnswer | undefined,
  recorder: EffectRecorder,
  onMissing: (problem: string) => void,
): (action: HttpRequestAction, context: ToolContext) => SendHttp {
  return ({ effect = "once" }, context) => {
    let isRedirect = false;
    return (url, init) => {
      const ask = async () => {
        const found = await answer?.(new Request(url, init));
        if (found !== undefined) return found;
        const problem = `No answer is scripted for the request ${init.method} ${url.href}, and a test app sends no request. Answer it with the option \`http\`, such as \`http: (request) => Response.json({})\`.`;
        onMissing(problem);
        throw new ToolError(problem, { code: "INVALID_INPUT" });
      };
      if (isRedirect) return ask();
      isRedirect = true;
      return recorder.run(context, {
        ...{ tool: "http.request", effect, run: ask },
        input: { method: init.method, url: url.href, ...defined({ body: init.body }) },
        shown: ({ status }) => ({ status }),
      });
    };
  };
}
