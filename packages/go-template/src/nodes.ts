/** What a template is made of. */
import type { Value } from "./value.ts";

interface At {
  readonly line: number;
}

export interface TextNode extends At {
  readonly kind: "text";
  readonly text: string;
}

/** `{{ pipeline }}`; one that declares a variable prints nothing. */
export interface ActionNode extends At {
  readonly kind: "action";
  readonly pipe: PipeNode;
}

export interface BranchNode extends At {
  readonly kind: "if" | "with" | "range";
  readonly pipe: PipeNode;
  readonly body: ListNode;
  readonly otherwise: ListNode | undefined;
}

export interface TemplateNode extends At {
  readonly kind: "template";
  readonly name: string;
  readonly pipe: PipeNode | undefined;
}

export interface JumpNode extends At {
  readonly kind: "break" | "continue";
}

export type StatementNode = TextNode | ActionNode | BranchNode | TemplateNode | JumpNode;
export type ListNode = readonly StatementNode[];

/** Commands, each of which gets the result of the one before it as its last argument. */
export interface PipeNode extends At {
  readonly kind: "pipe";
  readonly declares: readonly string[];
  /** `=`, not `:=`. */
  readonly assigns: boolean;
  readonly commands: readonly CommandNode[];
}

/** A function or value and its arguments. */
export interface CommandNode extends At {
  readonly words: readonly WordNode[];
}

export type WordNode =
  | (At & { readonly kind: "dot" })
  | (At & { readonly kind: "nil" })
  | (At & { readonly kind: "constant"; readonly value: Value; readonly source: string })
  | (At & { readonly kind: "function"; readonly name: string })
  | (At & { readonly kind: "field"; readonly names: readonly string[] })
  | (At & { readonly kind: "variable"; readonly name: string; readonly names: readonly string[] })
  | (At & { readonly kind: "chain"; readonly node: WordNode; readonly names: readonly string[] })
  | PipeNode;

/** A word as Go shows it in messages. */
export function shownWord(word: WordNode): string {
  switch (word.kind) {
    case "dot":
      return ".";
    case "nil":
      return "nil";
    case "constant":
      return word.source;
    case "function":
      return word.name;
    case "field":
      return word.names.map((name) => `.${name}`).join("");
    case "variable":
      return [word.name, ...word.names].join(".");
    case "chain":
      return `(${shownWord(word.node)})${word.names.map((name) => `.${name}`).join("")}`;
    case "pipe":
      return word.commands.map((command) => command.words.map(shownWord).join(" ")).join(" | ");
  }
}
