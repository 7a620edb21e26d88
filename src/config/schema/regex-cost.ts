/**
 * What compiling a regular expression of RE2 costs, told from its text alone. The unit is an instruction of its program,
 * which takes about a microsecond; work that leaves no instructions, such as building a class of letters, counts as much as
 * it takes. The estimate errs upwards, and for text that is not a valid expression it is just a number.
 */

/** The least that an expression costs, however short it is. */
const BASE_COST = 20;
/** Tables of Unicode are merged range by range. */
const UNICODE_CLASS_COST = 150;
/** In a class that ignores case, every so many letters of a range cost as much as an instruction. */
const LETTERS_PER_COST = 20;
/** A range whose ends are not read here, such as `\x{41}-\x{1E943}`, may be any. */
const WIDEST_RANGE = 0x1_0000;

/** The estimate for one expression. Takes time in proportion to the length of its text. */
export function regexCost(regex: string): number {
  const cost = new CostReader(regex);
  return cost.read();
}

/** An open group: the cost of what it holds so far, without its last part, which a repetition may follow. */
interface Group {
  total: number;
  last: number;
}

const REPETITION = /\{(\d+)(?:,(\d*))?\}/y;
/** Behind a bracket: a name, or flags. */
const GROUP_HEAD = /\?(?:P?<\w*>|[a-zA-Z-]*:?)/y;
const LITERAL_END = "\\E";

class CostReader {
  readonly #regex: string;
  readonly #ignoresCase: boolean;
  /** Of work that is done once, however often its part is repeated. */
  #parsing = BASE_COST;
  #at = 0;

  constructor(regex: string) {
    this.#regex = regex;
    this.#ignoresCase = /\(\?[a-zA-Z]*i/.test(regex);
  }

  read(): number {
    const open: Group[] = [];
    let group: Group = { total: 0, last: 0 };
    const add = (cost: number) => {
      group.total += group.last;
      group.last = cost;
    };
    while (this.#at < this.#regex.length) {
      const letter = this.#regex[this.#at++];
      if (letter === "(") {
        this.#skip(GROUP_HEAD);
        open.push(group);
        group = { total: 0, last: 0 };
      } else if (letter === ")") {
        const inside = group.total + group.last + 2;
        group = open.pop() ?? { total: 0, last: 0 };
        add(inside);
      } else if (letter === "*" || letter === "+" || letter === "?") group.last += 2;
      else if (letter === "{") group.last = this.#repeated(group.last);
      else add(this.#part(letter));
    }
    const unclosed = open.reduce((sum, { total, last }) => sum + total + last, 0);
    return this.#parsing + unclosed + group.total + group.last;
  }

  /** What one letter, class or escape leaves in the program. */
  #part(letter: string | undefined): number {
    if (letter === "\\") return this.#escape();
    if (letter === "[") this.#class();
    return 1;
  }

  /** `{n,m}` repeats what stands before it; anything else in braces is text. */
  #repeated(cost: number): number {
    REPETITION.lastIndex = this.#at - 1;
    const [all, least, most = least] = REPETITION.exec(this.#regex) ?? [];
    if (all === undefined) return cost + 1;
    this.#at += all.length - 1;
    return (cost + 1) * Math.max(Number(least), Number(most), 1) + 1;
  }

  #escape(): number {
    const letter = this.#regex[this.#at++];
    if (letter === "p" || letter === "P") this.#parsing += UNICODE_CLASS_COST;
    if (letter === "Q") {
      const end = this.#regex.indexOf(LITERAL_END, this.#at);
      const start = this.#at;
      this.#at = end < 0 ? this.#regex.length : end + LITERAL_END.length;
      return this.#at - start;
    }
    return 1;
  }

  /** Reads a class to its end. */
  #class(): void {
    this.#skip(/\^?\]?/y);
    for (; this.#at < this.#regex.length && this.#regex[this.#at] !== "]"; this.#at++) {
      this.#parsing++;
      const letter = this.#regex[this.#at];
      if (letter === "\\") this.#escapeInClass();
      else if (letter === "[") this.#skip(/\[:\^?\w*:(?=\])/y);
      else if (letter === "-" && this.#ignoresCase) this.#parsing += this.#rangeCost() / LETTERS_PER_COST;
    }
    this.#at++;
  }

  #escapeInClass(): void {
    this.#at++;
    if (/[pP]/.test(this.#regex[this.#at] ?? "")) this.#parsing += UNICODE_CLASS_COST;
  }

  /** How many letters a range has, at whose sign we are. */
  #rangeCost(): number {
    const before = this.#regex.codePointAt(this.#at - 1) ?? 0;
    const after = this.#regex.codePointAt(this.#at + 1) ?? 0;
    const [first, last] = [before, after].map((code) => String.fromCodePoint(code));
    if (last === "]" || first === "[") return 0;
    const isPlain = last !== "\\" && !/[}\udc00-\udfff]/.test(first ?? "");
    return isPlain ? Math.max(0, after - before) : WIDEST_RANGE;
  }

  #skip(pattern: RegExp): void {
    pattern.lastIndex = this.#at;
    const [text = ""] = pattern.exec(this.#regex) ?? [];
    this.#at += text.length;
  }
}
