import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";

/** Writes a protobuf message without a schema. Empty strings and zeros are left out, as proto3 does. */
export class MessageWriter {
  readonly #writer = new BinaryWriter();

  string(field: number, value: string): this {
    if (value !== "") this.#writer.tag(field, WireType.LengthDelimited).string(value);
    return this;
  }

  /** Bytes or a message; written even when empty, since an empty message that is set differs from an unset one. */
  bytes(field: number, value: Uint8Array): this {
    this.#writer.tag(field, WireType.LengthDelimited).bytes(value);
    return this;
  }

  varint(field: number, value: number): this {
    if (value !== 0) this.#writer.tag(field, WireType.Varint).int64(value);
    return this;
  }

  /** Written even when 0: the fields that need it are members of a oneof. */
  double(field: number, value: number): this {
    this.#writer.tag(field, WireType.Bit64).double(value);
    return this;
  }

  finish(): Uint8Array {
    return this.#writer.finish();
  }
}
