/// Recognises files by their first bytes.
///
/// Every signature requires at least 43 bits, most of them 48 to 64, so that thirty together stay below 3·10^-13 for
/// random bytes. The usual two to four magic bytes are not sufficient, so further fields are checked.
enum FileSignature {
    /// Returns true if the bytes begin like a known file.
    static func isFound(in bytes: UnsafeRawBufferPointer) -> Bool {
        guard bytes.count >= 16 else { return false }
        let reader = SignatureReader(bytes: bytes)
        switch bytes[0] {
        case 0x00: return reader.isMP4 || reader.has([0x00, 0x61, 0x73, 0x6D, 0x01, 0x00, 0x00, 0x00])
        case 0x1F: return reader.isGzip
        case 0x25: return reader.has("%PDF-1.") || reader.has("%PDF-2.")
        case 0x28: return reader.isZstandard
        case 0x30: return reader.isDER
        case 0x37: return reader.has([0x37, 0x7A, 0xBC, 0xAF, 0x27, 0x1C])
        case 0x42: return reader.isBzip2
        case 0x47: return reader.has("GIF87a") || reader.has("GIF89a")
        case 0x49: return reader.isID3 || reader.isTIFF
        case 0x4D: return reader.isTIFF || reader.isPortableExecutable
        case 0x4F: return reader.has([0x4F, 0x67, 0x67, 0x53, 0x00, 0x02])
        case 0x50: return reader.isZip
        case 0x52: return reader.isRIFF || reader.has([0x52, 0x61, 0x72, 0x21, 0x1A, 0x07])
        case 0x53: return reader.has("SQLite format 3")
        case 0x62: return reader.has("bplist0")
        case 0x66: return reader.has([0x66, 0x4C, 0x61, 0x43, 0x00, 0x00, 0x00, 0x22])
        case 0x7F: return reader.isELF
        case 0x89: return reader.has([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A])
        case 0xCA: return reader.has([0xCA, 0xFE, 0xBA, 0xBE, 0x00, 0x00])
        case 0xCE, 0xCF: return reader.isMachO
        case 0xD0: return reader.has([0xD0, 0xCF, 0x11, 0xE0, 0xA1, 0xB1, 0x1A, 0xE1])
        case 0xFD: return reader.has([0xFD, 0x37, 0x7A, 0x58, 0x5A, 0x00])
        case 0xFE: return reader.has([0xFE, 0xED, 0xFE, 0xED, 0x00, 0x00, 0x00])
        case 0xFF: return reader.isJPEG
        default: return false
        }
    }
}

/// Reads signatures that are not a single run of bytes. At least 16 bytes must be present.
private struct SignatureReader {
    let bytes: UnsafeRawBufferPointer

    func has(_ prefix: [UInt8], at offset: Int = 0) -> Bool {
        bytes.count >= offset + prefix.count && bytes[offset..<(offset + prefix.count)].elementsEqual(prefix)
    }

    func has(_ prefix: StaticString, at offset: Int = 0) -> Bool {
        let prefix = UnsafeBufferPointer(start: prefix.utf8Start, count: prefix.utf8CodeUnitCount)
        return bytes.count >= offset + prefix.count && bytes[offset..<(offset + prefix.count)].elementsEqual(prefix)
    }

    private func littleEndian32(at offset: Int) -> Int {
        Int(UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self)))
    }

    private func bigEndian16(at offset: Int) -> Int {
        Int(UInt16(bigEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt16.self)))
    }

    /// RFC 1952: 24 bits of magic and method, 7 of flags (none or a name), 6 of extra flags, 4 of the system. The
    /// length at the end is at most 1032 times the file's, a limit of deflate: for 64 KiB another 6 bits.
    var isGzip: Bool {
        guard has([0x1F, 0x8B, 0x08]), bytes[3] & ~0x08 == 0, [0, 2, 4].contains(bytes[8]),
            bytes[9] <= 13 || bytes[9] == 255, bytes.count >= 18
        else { return false }
        return littleEndian32(at: bytes.count - 4) <= 1032 * bytes.count
    }

    /// APPNOTE 4.3.7: 32 bits of signature, 10 of the version, 11 of flags, 12 of the method.
    var isZip: Bool {
        has([0x50, 0x4B, 0x03, 0x04]) && bytes[4] <= 63 && bytes[5] == 0 && bytes[6] & 0xF0 == 0
            && bytes[7] & ~0x08 == 0 && [0, 8, 9, 12, 14, 93, 95, 99].contains(bytes[8]) && bytes[9] == 0
    }

    /// ITU T.81: SOI, then an application segment with its name, or the first quantisation table.
    var isJPEG: Bool {
        guard has([0xFF, 0xD8, 0xFF]) else { return false }
        if has([0xDB, 0x00, 0x43], at: 3) || has([0xDB, 0x00, 0x84], at: 3) { return true }
        guard bytes[3] & 0xF0 == 0xE0 else { return false }
        return has("JFIF", at: 6) || has("Exif", at: 6) || has("ICC_", at: 6) || has("Adob", at: 6)
            || has("http", at: 6)
    }

    /// ISO 14496-12: a first box `ftyp` that is shorter than 256 bytes.
    var isMP4: Bool { has([0x00, 0x00, 0x00]) && has("ftyp", at: 4) }

    var isRIFF: Bool {
        has("RIFF") && (has("WEBP", at: 8) || has("WAVE", at: 8) || has("AVI ", at: 8))
    }

    var isBzip2: Bool {
        has("BZh") && (0x31...0x39).contains(bytes[3]) && has([0x31, 0x41, 0x59, 0x26, 0x53, 0x59], at: 4)
    }

    /// 32 bits of magic, 14 of class and byte order, 8 of the version.
    var isELF: Bool {
        has([0x7F, 0x45, 0x4C, 0x46]) && (1...2).contains(bytes[4]) && (1...2).contains(bytes[5]) && bytes[6] == 1
    }

    /// 31 bits of magic, 31 of the processor (x86 or ARM).
    var isMachO: Bool {
        has([0xFA, 0xED, 0xFE], at: 1) && (bytes[4] == 0x07 || bytes[4] == 0x0C) && bytes[5] == 0 && bytes[6] == 0
            && bytes[7] <= 2
    }

    /// 31 bits of magic, and the offset of the first directory, which is even and within the file.
    var isTIFF: Bool {
        let offset: Int
        if has([0x49, 0x49, 0x2A, 0x00]) {
            offset = littleEndian32(at: 4)
        } else if has([0x4D, 0x4D, 0x00, 0x2A]) {
            offset = Int(UInt32(littleEndian: UInt32(littleEndian32(at: 4)).byteSwapped))
        } else {
            return false
        }
        return offset >= 8 && offset % 2 == 0 && offset < bytes.count
    }

    /// 24 bits of magic, 14 of the version, 5 of flags, 4 of the length.
    var isID3: Bool {
        has("ID3") && (2...4).contains(bytes[3]) && bytes[4] == 0 && bytes[5] & 0x1F == 0
            && bytes[6..<10].allSatisfy { $0 < 0x80 }
    }

    /// `MZ`, and `PE` at the offset in the old header.
    var isPortableExecutable: Bool {
        guard has("MZ"), bytes.count >= 64 else { return false }
        let offset = littleEndian32(at: 0x3C)
        return offset <= bytes.count && has([0x50, 0x45, 0x00, 0x00], at: offset)
    }

    /// X.690: a SEQUENCE over all bytes. It begins with an INTEGER version (PKCS #1, #8 and #12 keys) or with the
    /// certificate's two SEQUENCEs.
    var isDER: Bool {
        let content: Int
        if bytes[1] == 0x82, bigEndian16(at: 2) == bytes.count - 4 {
            content = 4
        } else if bytes[1] == 0x81, bytes[2] >= 0x80, Int(bytes[2]) == bytes.count - 3 {
            content = 3
        } else {
            return false
        }
        if has([0x02, 0x01], at: content), bytes[content + 2] <= 3,
            bytes[content + 3] == 0x30 || bytes[content + 3] == 2
        {
            return true
        }
        return has([0x30, 0x82], at: content) && has([0xA0, 0x03, 0x02, 0x01], at: content + 4)
    }

    /// The maximum number of blocks that are followed: more than a file of 16 MiB has with encoders' usual block size.
    private static let zstandardBlockLimit = 16_384

    /// RFC 8878: the blocks of the first frame end exactly at the end of the bytes.
    var isZstandard: Bool {
        guard has([0x28, 0xB5, 0x2F, 0xFD]), bytes[4] & 0x18 == 0 else { return false }
        let descriptor = bytes[4]
        let isSingleSegment = descriptor & 0x20 != 0
        let dictionaryLength = [0, 1, 2, 4][Int(descriptor & 3)]
        let sizeLength = [isSingleSegment ? 1 : 0, 2, 4, 8][Int(descriptor >> 6)]
        var offset = 5 + (isSingleSegment ? 0 : 1) + dictionaryLength + sizeLength
        let checksumLength = descriptor & 0x04 != 0 ? 4 : 0
        for _ in 0..<Self.zstandardBlockLimit where offset + 3 <= bytes.count {
            let header = Int(bytes[offset]) | Int(bytes[offset + 1]) << 8 | Int(bytes[offset + 2]) << 16
            let type = header >> 1 & 3
            guard type != 3, header >> 3 <= 131_072 else { return false }
            offset += 3 + (type == 1 ? 1 : header >> 3)
            if header & 1 == 1 { return offset + checksumLength == bytes.count }
        }
        return false
    }
}
