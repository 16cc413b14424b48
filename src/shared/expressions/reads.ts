/** The paths that an expression reads. Pure. */
import type { ASTNode } from "@marcbachmann/cel-js";
import { parseExpression } from "./expression.ts";

/** A path from a variable: its name, then the names of members for as long as they are fixed. */
export type ReadPath = readonly string[];

/** Macros that name the item in their first argument. */
const MACROS = new Set(["all", "exists", "exists_one", "filter", "find", "map"]);

export interface Reads {
  paths: ReadPath[];
  /** The path, if the expression is only a path. */
  whole: ReadPath | null;
  /** The paths that it tests: with `has`, with `in`, or by comparing them with null. */
  tested: ReadPath[];
}

/**
 * Returns the paths that an expression reads, without paths that it only tests. Throws `ExpressionError`.
 * @example readsOf("state.order.items.map(i, i.price)").paths; // [["state", "order", "items"]]
 */
export function readsOf(source: string): Reads {
  const root = parseExpression(source);
  const paths: ReadPath[] = [];
  const tested: ReadPath[] = [];
  collect(root, new Set(), { paths, tested });
  return { paths: paths.filter((path) => !isWithin(path, tested)), whole: pathOf(root), tested };
}

/** Reports whether a path is one of others, or below one of them. */
export function isWithin(path: ReadPath, others: readonly ReadPath[]): boolean {
  return others.some((other) => other.every((name, place) => name === path[place]));
}

interface Found {
  paths: ReadPath[];
  tested: ReadPath[];
}

function collect(node: ASTNode, own: ReadonlySet<string>, found: Found): void {
  const path = pathOf(node);
  if (path !== null) {
    if (!own.has(path[0] ?? "")) found.paths.push(path);
    return;
  }
  const inner = (other: ASTNode) => collect(other, own, found);
  /** Skip a variable without members, and a loop variable. */
  const test = (other: ASTNode, ...members: string[]) => {
    const tested = [...(pathOf(other) ?? []), ...members];
    if (tested.length > 1 && pathOf(other) !== null && !own.has(tested[0] ?? "")) found.tested.push(tested);
  };
  switch (node.op) {
    case "value":
    case "id":
      return;
    case ".":
    case ".?":
      inner(node.args[0]);
      return;
    case "list":
      node.args.forEach(inner);
      return;
    case "map":
      for (const [key, value] of node.args) {
        if (key.op !== "id") inner(key);
        inner(value);
      }
      return;
    case "?:":
      node.args.forEach(inner);
      return;
    case "!_":
    case "-_":
      inner(node.args);
      return;
    case "call": {
      const [name, args] = node.args;
      if (name !== "has") args.forEach(inner);
      // If a member is dynamic, the test reads the path before it.
      else for (const one of args) pathOf(one) === null ? inner(one) : test(one);
      return;
    }
    case "rcall": {
      const [name, receiver, args] = node.args;
      const [variable] = args;
      inner(receiver);
      const isLoop = MACROS.has(name) && variable?.op === "id";
      const names = isLoop ? new Set([...own, variable.args]) : own;
      for (const other of args.slice(isLoop ? 1 : 0)) collect(other, names, found);
      return;
    }
    default: {
      const [one, other] = node.args;
      const member = node.op === "in" && one.op === "value" ? one.args : undefined;
      if (typeof member === "string") test(other, member);
      if (node.op === "==" || node.op === "!=")
        for (const [side, value] of [
          [one, other],
          [other, one],
        ] as const)
          if (isNull(value)) test(side);
      inner(one);
      inner(other);
    }
  }
}

function isNull(node: ASTNode): boolean {
  return node.op === "value" && node.args === null;
}

/** Returns the path that an expression is; `null` for any other expression. */
function pathOf(node: ASTNode): ReadPath | null {
  if (node.op === "id") return [node.args];
  const [name, object] =
    node.op === "."
      ? [node.args[1], node.args[0]]
      : node.op === "[]" && node.args[1].op === "value" && typeof node.args[1].args === "string"
        ? [node.args[1].args, node.args[0]]
        : [null, null];
  if (name === null || object === null) return null;
  const path = pathOf(object);
  return path === null ? null : [...path, name];
}
