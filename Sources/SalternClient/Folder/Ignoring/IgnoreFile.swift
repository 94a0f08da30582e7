internal import Foundation

/// The patterns of one file `.salternignore`, which apply to its folder.
struct IgnoreFile: Hashable, Sendable {
    static let name = ".salternignore"
    static let byteLimit = 64 << 10
    static let lineByteLimit = 1_024
    static let patternLimit = 1_000

    private let patterns: [IgnorePattern]

    /// - Parameter bytes: The content, of at most ``byteLimit``.
    init(_ bytes: [UInt8]) throws(IgnoreFault) {
        if bytes.count > Self.byteLimit { throw IgnoreFault(.fileTooLong) }
        if bytes.contains(0) { throw IgnoreFault(.notText) }
        // Some editors begin a text with a byte order mark.
        let text = bytes.starts(with: [0xef, 0xbb, 0xbf]) ? bytes.dropFirst(3) : bytes[...]
        var patterns: [IgnorePattern] = []
        let lines = text.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        for (number, line) in zip(1..., lines) {
            do throws(IgnoreFault) {
                if line.count > Self.lineByteLimit { throw IgnoreFault(.lineTooLong) }
                guard let line = String(validating: line, as: UTF8.self) else { throw IgnoreFault(.notText) }
                if let pattern = try IgnorePattern(line: line) { patterns.append(pattern) }
            } catch {
                throw IgnoreFault(error.reason, line: number)
            }
        }
        if patterns.count > Self.patternLimit { throw IgnoreFault(.tooManyPatterns) }
        self.patterns = patterns
    }

    /// Returns true when the last matching pattern ignores the entry; nil when none matches.
    /// - Parameter names: The path from the folder of the ignore file on.
    func decide(_ names: ArraySlice<[UInt8]>, isFolder: Bool) -> Bool? {
        patterns.last { $0.matches(names, isFolder: isFolder) }.map { !$0.isNegated }
    }

    /// Returns true for the name of an ignore file, or of its conflict copy. The patterns of a copy apply, too.
    /// Otherwise a conflict would send entries that one side ignores.
    static func isName(_ name: some StringProtocol) -> Bool {
        name == Self.name || name.hasPrefix("\(Self.name) (conflict, ")
    }
}
