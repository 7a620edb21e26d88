/**
 * Memory that many peers share. When it is exhausted, the peer that holds the most loses its oldest share: a flood from one
 * peer pushes out the flood, and not the few bytes of the others.
 */

/** A part of the memory, held by one peer. */
export interface Share {
  /** Changes its size; a no-op once it was given back or lost. */
  resize(bytes: number): void;
  /** A no-op once it was given back or lost. */
  giveBack(): void;
}

interface Peer {
  readonly name: string;
  bytes: number;
  /** Oldest first. */
  readonly shares: Set<HeldShare>;
}

interface HeldShare extends Share {
  readonly giveWay: () => void;
}

export class FairShare {
  readonly #maxBytes: number;
  readonly #peers = new Map<string, Peer>();
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** What all peers hold together. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Takes a share. `giveWay` is called when the share is lost to others, which may be within this call. */
  take(name: string, bytes: number, giveWay: () => void): Share {
    const peer = this.#peers.get(name) ?? { name, bytes: 0, shares: new Set() };
    this.#peers.set(name, peer);
    let held = 0;
    const share: HeldShare = {
      giveWay,
      resize: (size) => {
        if (!peer.shares.has(share)) return;
        this.#add(peer, size - held);
        held = size;
        this.#makeRoom();
      },
      giveBack: () => {
        if (!peer.shares.delete(share)) return;
        this.#add(peer, -held);
        if (peer.shares.size === 0) this.#peers.delete(peer.name);
      },
    };
    peer.shares.add(share);
    share.resize(bytes);
    return share;
  }

  #add(peer: Peer, bytes: number): void {
    peer.bytes += bytes;
    this.#bytes += bytes;
  }

  #makeRoom(): void {
    while (this.#bytes > this.#maxBytes) {
      const oldest = this.#oldestOfLargestPeer();
      if (oldest === undefined) return;
      oldest.giveBack();
      oldest.giveWay();
    }
  }

  #oldestOfLargestPeer(): HeldShare | undefined {
    let largest: Peer | undefined;
    for (const peer of this.#peers.values()) if (largest === undefined || peer.bytes > largest.bytes) largest = peer;
    const [oldest] = largest?.shares ?? [];
    return oldest;
  }
}
