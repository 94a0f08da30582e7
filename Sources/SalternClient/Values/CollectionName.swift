/// The names of collections on the server: `[a-z0-9-]{1,32}`.
public enum CollectionName {
    /// Returns true for a valid name of a collection of items.
    public static func isValid(_ name: String) -> Bool {
        (1...32).contains(name.utf8.count) && name != Attachment.chunkCollection
            && name.utf8.allSatisfy {
                (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0)
                    || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) || $0 == UInt8(ascii: "-")
            }
    }
    /// Returns true for a collection of the kit itself, which lists of items omit.
    static func isHidden(_ name: String) -> Bool {
        name == MembershipRecord.collection || name == SharedVaultService.nameCollection
    }
}
