/** A template that cannot be read or executed. The message has the form of Go's: `template: NAME:LINE: ...`. */
export class TemplateError extends Error {
  /** Of the template, from 1. */
  readonly line: number;

  constructor(message: string, line: number) {
    super(message);
    this.name = "TemplateError";
    this.line = line;
  }
}

/** What a function says against its arguments; whoever calls it adds where. */
export class CallError extends Error {}
