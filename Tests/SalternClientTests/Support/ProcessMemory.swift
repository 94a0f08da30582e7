import Cryptography
import Foundation
import Glibc

/// The memory of this process, as a debugger or a core file has it.
struct ProcessMemory {
    /// A secret that is searched for. It is kept inverted, so that a search does not find the needle itself.
    struct Needle: Sendable {
        fileprivate let inverted: [UInt8]

        init(_ secret: SecureBytes) { inverted = secret.withUnsafeBytes { $0.map { ~$0 } } }

        init(base64Of secret: SecureBytes) {
            self.init(SecureBytes(count: Base64.encodedCount(secret.count)) { Base64.encode(secret, into: $0) })
        }
    }

    private static let step = 4 << 20

    /// Returns how often each needle is in writable memory.
    static func count(_ needles: [Needle]) throws -> [Int] {
        let descriptor = open("/proc/self/mem", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw POSIXError(.EACCES) }
        defer { close(descriptor) }
        let longest = needles.map(\.inverted.count).max() ?? 0
        // What is read and compared is in a region that is left out.
        let size = step + longest * 2
        guard let region = mmap(nil, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
            region != MAP_FAILED
        else { throw POSIXError(.ENOMEM) }
        defer { munmap(region, size) }
        let needle = region + step + longest
        let own = UInt(bitPattern: region)..<UInt(bitPattern: region) + UInt(size)
        var counts = needles.map { _ in 0 }
        for line in try maps().split(separator: "\n") {
            let words = line.split(separator: " ")
            let bounds = words[0].split(separator: "-").compactMap { UInt($0, radix: 16) }
            guard words[1].hasPrefix("rw"), bounds.count == 2, !line.contains("/dev/") else { continue }
            for range in parts(of: bounds[0]..<bounds[1], without: own) {
                var position = range.lowerBound
                while position < range.upperBound {
                    let wanted = min(step + longest, Int(range.upperBound - position))
                    let got = pread(descriptor, region, wanted, off_t(position))
                    guard got > 0 else { break }
                    for (index, secret) in needles.enumerated() {
                        for (offset, byte) in secret.inverted.enumerated() {
                            needle.storeBytes(of: ~byte, toByteOffset: offset, as: UInt8.self)
                        }
                        counts[index] += occurrences(of: needle, secret.inverted.count, in: region, got)
                    }
                    position += UInt(min(step, got))
                }
            }
        }
        return counts
    }

    /// The kernel gives a page at a time, and Foundation takes a short read for the end of the file.
    private static func maps() throws -> String {
        let descriptor = open("/proc/self/maps", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw POSIXError(.EACCES) }
        defer { close(descriptor) }
        var text: [UInt8] = []
        var page = [UInt8](repeating: 0, count: 4_096)
        while true {
            let got = read(descriptor, &page, page.count)
            guard got > 0 else { break }
            text += page[..<got]
        }
        return String(decoding: text, as: UTF8.self)
    }

    private static func parts(of range: Range<UInt>, without own: Range<UInt>) -> [Range<UInt>] {
        guard range.overlaps(own) else { return [range] }
        return [
            range.lowerBound..<max(range.lowerBound, own.lowerBound),
            min(range.upperBound, own.upperBound)..<range.upperBound,
        ]
    }

    /// Counts by one byte of the middle: tokens have their first bytes in common.
    private static func occurrences(
        of needle: UnsafeMutableRawPointer, _ length: Int, in memory: UnsafeMutableRawPointer, _ count: Int
    ) -> Int {
        let middle = length / 2
        let byte = Int32(needle.load(fromByteOffset: middle, as: UInt8.self))
        var found = 0
        var position = middle
        while position < count, let hit = memchr(memory + position, byte, count - position) {
            let start = hit - middle
            position = hit - memory + 1
            guard start + length <= memory + count else { break }
            if memcmp(start, needle, length) == 0 { found += 1 }
        }
        return found
    }
}
