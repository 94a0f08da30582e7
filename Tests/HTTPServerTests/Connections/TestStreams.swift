import HTTPCore
import Synchronization

/// The streams of a test server.
///
/// `/stream` writes pieces of many sizes and ends, `/stream-none` writes nothing and ends, `/broken` fails after a
/// piece, `/stall-in-little-time` never writes, `/endless` writes a piece and waits until it is released,
/// `/endless-in-little-time` too, `/flood` writes for ever.
final class TestStreams: Sendable {
    struct Failure: Error {}

    /// What streams have done.
    struct Counts {
        var begun = 0
        /// Pieces of `/flood` that its client's socket has taken.
        var pieces = 0
        /// Streams whose producer has come to its end, whatever way.
        var ended = 0
        /// Streams that were let go.
        var released = 0
    }

    /// Counts a stream as released when the last reference goes.
    private final class Held: Sendable {
        let streams: TestStreams
        init(_ streams: TestStreams) { self.streams = streams }
        deinit { streams.counts.withLock { $0.released += 1 } }
        func begin() { streams.counts.withLock { $0.begun += 1 } }
        func pieceTaken() { streams.counts.withLock { $0.pieces += 1 } }
        func end() { streams.counts.withLock { $0.ended += 1 } }
    }

    private let counts = Mutex(Counts())

    var count: Counts { counts.withLock { $0 } }

    static let pieceSizes = [1, 15, 16, 17, 255, 4_096, 16_383, 16_384, 65_536, 1_000_000, 3]
    static let floodPiece = [UInt8](repeating: 0x66, count: 64 * 1_024)

    /// What `/stream` writes.
    static var body: [UInt8] {
        pieceSizes.flatMap { size in (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ size) } }
    }

    private static let paths: Set = [
        "/stream", "/stream-none", "/broken", "/stall-in-little-time", "/endless", "/endless-in-little-time", "/flood",
    ]

    func stream(at path: String, wait: @escaping @Sendable () async -> Void) -> ResponseStream? {
        guard Self.paths.contains(path) else { return nil }
        let held = Held(self)
        let isEndless = path.hasPrefix("/endless") || path == "/flood"
        let produce: ResponseStream.Producer =
            switch path {
            case "/stream":
                { writer in
                    var body = Self.body[...]
                    for size in Self.pieceSizes {
                        try await writer.write(Array(body.prefix(size)))
                        try await writer.write([])
                        body = body.dropFirst(size)
                    }
                }
            case "/stream-none": { _ in }
            case "/broken":
                { writer in
                    try await writer.write(Array("half".utf8))
                    throw Failure()
                }
            case "/stall-in-little-time": { _ in await wait() }
            case "/endless", "/endless-in-little-time":
                { writer in
                    try await writer.write(Array("piece\n".utf8))
                    await wait()
                    try await writer.write(Array("released\n".utf8))
                }
            default:
                { writer in
                    while true {
                        try await writer.write(Self.floodPiece)
                        held.pieceTaken()
                    }
                }
            }
        return ResponseStream(isOpenEnded: isEndless) { writer in
            held.begin()
            defer { held.end() }
            try await produce(writer)
        }
    }
}
