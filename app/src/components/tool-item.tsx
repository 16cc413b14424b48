/** A tool call of a turn: a question while it waits for a person, its card otherwise, with the questions of the agents below. */
import { useCallback, useContext, useRef, useState } from "react";
import { callsAsking, type OperationState } from "../../../src/client/index.ts";
import { Approvals } from "../approvals.ts";
import { wordsOf } from "../format.ts";
import { ApprovalCard } from "./approval-card.tsx";
import { ErrorNote } from "./error-note.tsx";
import { RunQuestions } from "./run-questions.tsx";
import { ToolCard } from "./tool-card.tsx";

export function ToolItem({ operation, active }: { operation: OperationState; active: boolean }) {
  const approvals = useContext(Approvals);
  const box = useRef<HTMLDivElement>(null);
  const takeFocus = useCallback(() => box.current?.focus(), []);
  const [late, setLate] = useState<string>();
  const isAsked = active && operation.state === "awaiting_approval" && approvals !== null;
  if (isAsked)
    return (
      <div ref={box} tabIndex={-1} className="rounded-xl">
        <ApprovalCard operation={operation} actions={approvals} onLate={setLate} onLeave={takeFocus} />
      </div>
    );
  return (
    <div ref={box} tabIndex={-1} className="space-y-3 rounded-xl">
      <ToolCard operation={operation} active={active} />
      {late !== undefined && <ErrorNote text={late} />}
      {active && approvals !== null && operation.held === true && operation.runId !== undefined && (
        <RunQuestions id={operation.runId} />
      )}
      {active &&
        approvals !== null &&
        callsAsking(operation).map(({ agentId, ...asking }) => (
          <ApprovalCard
            key={asking.id}
            operation={asking}
            asker={wordsOf(agentId)}
            actions={approvals}
            onLate={setLate}
            onLeave={takeFocus}
          />
        ))}
    </div>
  );
}
