/** The minimal turn of the lower bounds: call the scripted model and store one row. */
import { lookup, type Prompt, replyTo, seededMessage, toolInput } from "../workload.ts";

const CREATE = "CREATE TABLE IF NOT EXISTS turns (n INTEGER PRIMARY KEY, question TEXT, answer TEXT)";
const INSERT = "INSERT INTO turns (question, answer) VALUES (?, ?)";
const COUNT = "SELECT count(*) AS turns FROM turns";

export function createTable(sql: SqlStorage): void {
  sql.exec(CREATE);
}

/** Runs one turn, and stores question and answer in one row. */
export async function runTurn(sql: SqlStorage, question: string): Promise<string> {
  const answer = await answerTo(question);
  insertTurn(sql, question, answer);
  return answer;
}

export function insertTurn(sql: SqlStorage, question: string, answer: string): void {
  sql.exec(INSERT, question, answer);
}

type RunTool = typeof lookup;

/** Streams the model's reply, and runs the requested tools by `runTool`. Returns the answer. */
export async function answerTo(question: string, runTool: RunTool = lookup): Promise<string> {
  const prompt: Prompt = { text: question, messages: 1, toolResults: 0 };
  for (;;) {
    let answer = "";
    let called = false;
    for await (const part of stream(prompt)) {
      if (typeof part === "string") {
        answer += part;
      } else {
        await runTool(toolInput.parse(part));
        called = true;
      }
    }
    if (!called) return answer;
    prompt.messages += 2;
    prompt.toolResults += 1;
  }
}

/** Stores history as turns of two messages. Returns the number of stored messages. */
export function seedTurns(storage: DurableObjectStorage, messages: number): number {
  storage.transactionSync(() => {
    for (let index = 0; index < messages; index += 2) {
      storage.sql.exec(INSERT, seededMessage(index).text, seededMessage(index + 1).text);
    }
  });
  return 2 * Number(storage.sql.exec(COUNT).one().turns);
}

async function* stream(prompt: Prompt): AsyncGenerator<string | { entry: number }> {
  const reply = replyTo(prompt);
  if (reply.kind === "tool") yield reply.input;
  else yield* reply.pieces;
}
