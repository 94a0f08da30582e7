import CommandLineKit
import Cryptography

/// The last line of a backup: the SHA-256 of everything before it.
///
/// `pg_restore` reads the parts in its table of contents, and ignores later bytes. So the digest can be in the file
/// itself, and stays with it when the file is moved or renamed.
enum BackupDigest {
    enum Finding {
        case matches
        /// The content was changed, or the end is missing.
        case differs
        /// Another program wrote the file, or version 0.9.0 of this one.
        case missing
    }

    /// Starts with a newline, so that `head -n -1` writes exactly the digested bytes.
    private static let introduction = Array("\nsaltern backup, SHA-256 of all before this line: ".utf8)
    private static let length = introduction.count - 1 + 2 * SHA256Digest.byteCount + 1
    /// The distance from the end within which it is searched: accidentally appended bytes must not hide it.
    private static let reach = 65_536

    static func append(to file: OpenFile, _ console: Console) throws(CommandFailure) {
        try file.append(introduction.prefix(1))
        try file.append(line(for: file, upTo: file.size(), console)[...])
    }

    /// Reads the whole file and compares its digest.
    static func check(_ file: OpenFile, _ console: Console) throws(CommandFailure) -> Finding {
        let size = try file.size()
        let start = max(0, size - reach)
        guard hasTraces(try file.bytes(at: start, count: size - start)) else { return .missing }
        guard size > length else { return .differs }
        let expected = try line(for: file, upTo: size - length, console)
        return try file.bytes(at: size - length, count: length) == expected ? .matches : .differs
    }

    /// Returns true for remains of a digest, so that a damaged one does not count as missing.
    private static func hasTraces(_ end: [UInt8]) -> Bool {
        let introduction = introduction
        for start in end.indices {
            let overlap = min(end.count - start, introduction.count)
            var agreeing = 0
            for index in 0..<overlap where end[start + index] == introduction[index] { agreeing += 1 }
            if agreeing >= max(7, overlap / 2) { return true }
        }
        return false
    }

    private static func line(for file: OpenFile, upTo end: Int, _ console: Console) throws(CommandFailure) -> [UInt8] {
        var hash = SHA256.Incremental()
        var bar = ProgressBar(console, "MiB checked")
        defer { bar.end() }
        var done = 0
        while done < end {
            let piece = try file.bytes(at: done, count: min(1 << 20, end - done))
            guard !piece.isEmpty else { throw CommandFailure("the file became shorter while it was read") }
            hash.update(piece)
            done += piece.count
            bar.show(done >> 20)
            if let wish = console.wish, wish.isThere { throw wish.fulfilled("ended by a signal") }
        }
        return introduction.dropFirst() + Array("\(Hex.encode(hash.finalize()))\n".utf8)
    }
}
