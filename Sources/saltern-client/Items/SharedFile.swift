import Cryptography
import Foundation
import SalternClient

/// A file behind a link: a JSON object of exactly these members (docs/protocol.md, "Shares").
struct SharedFile: Codable {
    let filename: String
    let mediaType: String
    let data: Base64Bytes

    /// Returns the payload for an item: its text unchanged, any other content as a file.
    static func payload(of item: PlainItem) throws -> SecureBytes {
        let isText = item.body.withUnsafeBytes { String(validating: $0, as: UTF8.self) != nil }
        if isText { return item.body }
        let file = SharedFile(
            filename: item.title ?? "item.bin", mediaType: "application/octet-stream",
            data: Base64Bytes(item.body.withUnsafeBytes { [UInt8]($0) }))
        return SecureBytes(copying: Array(try JSONEncoder().encode(file)))
    }

    /// Decodes a shared file; nil for another payload.
    init?(payload: SecureBytes) {
        let json = payload.withUnsafeBytes { Data($0) }
        guard let members = try? JSONDecoder().decode([String: String].self, from: json),
            Set(members.keys) == ["filename", "mediaType", "data"],
            let file = try? JSONDecoder().decode(SharedFile.self, from: json)
        else { return nil }
        self = file
    }

    private init(filename: String, mediaType: String, data: Base64Bytes) {
        self.filename = filename
        self.mediaType = mediaType
        self.data = data
    }
}
