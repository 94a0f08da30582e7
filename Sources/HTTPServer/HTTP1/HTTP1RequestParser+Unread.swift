internal import HTTPCore

extension HTTP1RequestParser {
    /// The most bytes of a head that are searched.
    private static let searchLimit = 32 * 1_024

    /// The path and the origin in the received bytes of a rejected or incomplete head. They are unchecked.
    var unreadHead: UnreadHead? {
        guard isReadingHead else { return nil }
        var lines = buffer[start...].prefix(Self.searchLimit).split(separator: ASCII.lineFeed)[...]
        if let first = lines.first, first.allSatisfy({ $0 == ASCII.carriageReturn }) { lines = lines.dropFirst() }
        guard let words = lines.first?.split(separator: ASCII.space), words.count > 1, words[1].first == ASCII.slash
        else {
            return nil
        }
        let path = words[1].prefix { $0 != ASCII.questionMark }
        let origins = lines.dropFirst().compactMap(Self.origin)
        return UnreadHead(
            path: String(decoding: path, as: UTF8.self), origin: origins.count == 1 ? origins[0] : nil)
    }

    /// Returns the value of a line that is a field `Origin`.
    private static func origin(_ line: some Collection<UInt8>) -> String? {
        let name = Array("origin:".utf8)
        guard line.prefix(name.count).map({ ASCII.lowercased($0) }) == name else { return nil }
        let value = line.dropFirst(name.count).filter { $0 > ASCII.space }
        return String(decoding: value, as: UTF8.self)
    }
}
