import Cryptography
import Testing

@testable import SalternClient

/// The vectors of docs/protocol.md, made with Python's `cryptography`: whoever seals by the document is understood here, and
/// the other way round.
struct VectorTests {
    private func bytes(_ hex: String) throws -> [UInt8] { try #require(Hex.decode(hex)) }

    private func place(_ part: SealedBox.Part) throws -> SealedBox.Place {
        SealedBox.Place(
            part, account: try #require(AccountID("11111111-2222-3333-4444-555555555555")),
            item: try #require(ItemID("aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee")), collection: "notes")
    }

    private static let first =
        "01dd2501b8000102030405060708090a0b2fa6c1e4bdf8f99fc902e2ffa52eb7fd99ceb68263f3b74cf8f62b7b85583901"
        + "605f71b68796ffdf8fc19e67ebba40e98e709dd6d1af4c3de7290e39e36e467f14f14c8d8a7b1f7c1a6c9b5cb7fcbd14"
    private static let title =
        "01dd2501b80c0d0e0f1011121314151617733ba9604b8fada7aba6252d82c0f2d547790ae4ccc02b36ced1d356d86c5ce5"
        + "9fcfe0c510a7c801557b559a538e19cdabba5539fa339b482c605b328014be04b6a0eca09ab7ef13118eed57bf0e0eca"

    @Test func `seals the bytes of the document`() throws {
        let key = try #require(DataKey(SecureBytes(copying: Array(0..<32 as Range<UInt8>))))
        let first = try SealedBox.seal(
            Array("Buy salt.".utf8), .first, at: place(.body), with: key, nonce: Array(0..<12 as Range<UInt8>))
        #expect(Hex.encode(first) == Self.first)
        let edit = SealedBox.Edit.first.next(after: first)
        let title = try SealedBox.seal(
            Array("Shopping".utf8), edit, at: place(.title), with: key, nonce: Array(12..<24 as Range<UInt8>))
        #expect(Hex.encode(title) == Self.title)
        let long = try SealedBox.seal(
            [UInt8](repeating: UInt8(ascii: "x"), count: 1_500), edit, at: place(.body), with: key,
            nonce: Array(24..<36 as Range<UInt8>))
        #expect(long.count == 1_633)
        #expect(
            Hex.encode(SHA256.hash(long)) == "77f6a763c29c544435d03377e37a46ee1712cf7a564148a0f7a2ad153cf17b60")
    }

    @Test func `stretches and derives what the document says`() async throws {
        let rule = StretchingRule(saltPrefix: "com.example.MyGreatSite:", minimumIterations: 10_000)
        let stretched = try await rule.stretch(Password("S3kr3t!"), userid: "robnapier@gmail.com", iterations: 10_000)
        #expect(
            Hex.encode(stretched.unlockKey) == "95aba2ff9c7c5c8318e58c3df64c17d077ea34c7bb2bb4c1e9b3c63e548b2aed")
        let key = HKDF.deriveKey(from: stretched.unlockKey, info: SealingLabels.keyringKey.utf8)
        #expect(Hex.encode(key) == "c1d96b1b9596b3b68baa47ce6678fdbdeb7da0f13e79a989cf9bb58c65eaab51")
    }
}
