/** A tool call of a turn: a question while it waits for a person, its card otherwise. */
import { useCallback, useContext, useRef } from "react";
import type { OperationState } from "../../../src/client/index.ts";
import { ResolveApproval } from "../approvals.ts";
import { ApprovalCard } from "./approval-card.tsx";
import { ToolCard } from "./tool-card.tsx";

export function ToolItem({ operation, active }: { operation: OperationState; active: boolean }) {
  const resolve = useContext(ResolveApproval);
  const box = useRef<HTMLDivElement>(null);
  const takeFocus = useCallback(() => box.current?.focus(), []);
  const isAsked = active && operation.state === "awaiting_approval" && resolve !== null;
  return (
    <div ref={box} tabIndex={-1} className="rounded-xl">
      {isAsked ? (
        <ApprovalCard operation={operation} onResolve={resolve} onLeave={takeFocus} />
      ) : (
        <ToolCard operation={operation} active={active} />
      )}
    </div>
  );
}
