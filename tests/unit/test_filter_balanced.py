"""The default policy keeps ordinary prose of any language, and drops what is no prose."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

from corpus.filter.language import detect_language
from corpus.filter.measure import measure
from corpus.filter.policy import load_policy

PROSE = {
    "en": "The river had been low all summer, and the old mill at the bend stood quiet for the first time in years. Nobody in the village minded very much. "
    "The children walked across the stones to the other bank, where the orchard was, and came home late with their pockets full of plums.",
    "de": "Der Fluss führte den ganzen Sommer über wenig Wasser, und die alte Mühle an der Biegung stand zum ersten Mal seit Jahren still. Im Dorf störte das kaum "
    "jemanden. Die Kinder liefen über die Steine ans andere Ufer, wo der Obstgarten lag, und kamen spät mit vollen Taschen nach Hause.",
    "fr": "La rivière était restée basse tout l'été, et le vieux moulin du tournant se taisait pour la première fois depuis des années. Au village, personne ne s'en "
    "plaignait vraiment. Les enfants passaient sur les pierres jusqu'à l'autre rive, où se trouvait le verger, et rentraient tard, les poches pleines de prunes.",
    "es": "El río bajó durante el verano entero y el viejo molino de la curva estaba en silencio por primera vez en muchos años. A nadie en el pueblo le importaba demasiado. "
    "Los niños cruzaban por las piedras hasta la otra orilla, donde estaba el huerto, y volvían tarde a casa con los bolsillos llenos de ciruelas.",
    "pl": "Rzeka przez całe lato była płytka, a stary młyn na zakręcie po raz pierwszy od lat stał cicho. Nikomu we wsi to specjalnie nie przeszkadzało. Dzieci chodziły "
    "po kamieniach na drugi brzeg, gdzie był sad, i wracały późno do domu z kieszeniami pełnymi śliwek.",
    "fi": "Joki oli ollut matalalla koko kesän, ja mutkan vanha mylly seisoi hiljaa ensimmäistä kertaa vuosiin. Kylässä se ei haitannut juuri ketään. Lapset kulkivat kiviä "
    "pitkin vastarannalle, missä hedelmätarha oli, ja palasivat myöhään kotiin taskut täynnä luumuja.",
    "tr": "Nehir bütün yaz boyunca alçalmıştı ve dönemeçteki eski değirmen yıllardan beri ilk kez sessiz duruyordu. Köyde buna pek aldıran yoktu. Çocuklar taşların üzerinden "
    "karşı kıyıya, meyve bahçesinin olduğu yere geçiyor ve akşam geç saatte cepleri erik dolu olarak eve dönüyorlardı.",
    "vi": "Suốt mùa hè nước sông xuống thấp, và chiếc cối xay cũ ở khúc quanh đứng yên lần đầu tiên sau nhiều năm. Trong làng chẳng ai bận tâm về điều đó. Bọn trẻ đi trên "
    "những hòn đá sang bờ bên kia, nơi có vườn cây, rồi về nhà muộn với túi đầy mận chín.",
    "ru": "Всё лето река стояла низко, и старая мельница у излучины впервые за много лет молчала. В деревне это никого особенно не тревожило. Дети переходили по камням на "
    "другой берег, где был сад, и возвращались домой поздно, с карманами, полными слив.",
    "el": "Το ποτάμι είχε χαμηλή στάθμη όλο το καλοκαίρι και ο παλιός μύλος στη στροφή έστεκε σιωπηλός για πρώτη φορά μετά από χρόνια. Στο χωριό δεν πείραζε και πολύ κανέναν. "
    "Τα παιδιά περνούσαν πάνω από τις πέτρες στην άλλη όχθη, όπου ήταν το περιβόλι, και γύριζαν αργά στο σπίτι με τις τσέπες γεμάτες δαμάσκηνα.",
    "ar": "ظل النهر منخفضا طوال الصيف، وكانت الطاحونة القديمة عند المنعطف صامتة لأول مرة منذ سنوات. لم يهتم أحد في القرية كثيرا بذلك. كان الأطفال يعبرون فوق الحجارة إلى "
    "الضفة الأخرى حيث يوجد البستان، ثم يعودون إلى البيت في وقت متأخر وجيوبهم مليئة بالخوخ.",
    "he": "הנהר היה רדוד כל הקיץ, והטחנה הישנה שבעיקול עמדה דוממת בפעם הראשונה מזה שנים. בכפר זה לא הפריע במיוחד לאיש. הילדים חצו את האבנים אל הגדה השנייה, שם היה הבוסתן, "
    "וחזרו הביתה מאוחר בערב כשכיסיהם מלאים שזיפים.",
    "hi": "पूरी गर्मी नदी में पानी कम रहा, और मोड़ पर खड़ी पुरानी चक्की बरसों बाद पहली बार चुप थी। गाँव में इस बात की किसी को खास चिंता नहीं थी। बच्चे पत्थरों पर चलकर दूसरे किनारे तक जाते थे, "
    "जहाँ बगीचा था, और देर से घर लौटते थे, उनकी जेबें आलूबुखारों से भरी होती थीं।",
    "bn": "সারা গ্রীষ্মে নদীতে জল কম ছিল, আর বাঁকের পুরোনো কলটি বহু বছর পরে প্রথমবার চুপ করে দাঁড়িয়ে ছিল। গ্রামের কেউ তাতে বিশেষ চিন্তা করেনি। ছেলেমেয়েরা পাথরের উপর দিয়ে হেঁটে ওপারে যেত, "
    "যেখানে বাগান ছিল, আর অনেক দেরিতে পকেট ভরা ফল নিয়ে বাড়ি ফিরত।",
    "ta": "கோடை முழுவதும் ஆற்றில் நீர் குறைவாக இருந்தது, வளைவில் இருந்த பழைய ஆலை பல ஆண்டுகளுக்குப் பிறகு முதல் முறையாக அமைதியாக நின்றது. கிராமத்தில் யாரும் அதைப் பற்றி அதிகம் கவலைப்படவில்லை. "
    "குழந்தைகள் கற்களின் மீது நடந்து மறு கரைக்குச் சென்றார்கள், அங்கே ஒரு தோட்டம் இருந்தது, மாலையில் தாமதமாக வீட்டிற்குத் திரும்பினார்கள். அவர்களின் பைகள் பழங்களால் நிறைந்திருந்தன, அம்மா எதுவும் சொல்லவில்லை.",
    "ko": "여름 내내 강물이 낮았고, 굽이에 있는 오래된 방앗간은 몇 년 만에 처음으로 조용했다. 마을 사람들은 그것을 크게 신경 쓰지 않았다. 아이들은 돌다리를 건너 과수원이 있는 건너편으로 가서 놀았고, "
    "주머니에 자두를 가득 넣은 채 늦은 저녁에야 집으로 돌아왔다. 어머니는 아무 말도 하지 않고 저녁상을 차려 주셨다.",
    "ja": "夏のあいだ川の水はずっと少なく、曲がり角の古い水車小屋は何年かぶりに静かだった。村の人たちはあまり気にしていなかった。子どもたちは石の上を渡って果樹園のある向こう岸へ行き、"
    "ポケットをすももでいっぱいにして、夕方おそく家に帰ってきた。",
    "zh": "整个夏天河水都很浅，河湾处的老磨坊多年来第一次安静下来。村里的人并不怎么在意这件事。孩子们踩着石头走到对岸的果园里去玩，直到很晚才回家，口袋里装满了李子。母亲什么也没有说，只是把晚饭端上了桌子。",
    "th": "ตลอดฤดูร้อนน้ำในแม่น้ำลดต่ำลง และโรงสีเก่าตรงหัวโค้งก็เงียบสงบเป็นครั้งแรกในรอบหลายปี คนในหมู่บ้านไม่ค่อยสนใจเรื่องนี้มากนัก เด็ก ๆ เดินข้ามก้อนหินไปยังอีกฝั่งหนึ่งซึ่งมีสวนผลไม้ "
    "แล้วกลับบ้านตอนเย็นพร้อมกับลูกพลัมเต็มกระเป๋า",
    "am": "በበጋው ወቅት ሁሉ የወንዙ ውሃ ዝቅተኛ ነበር፣ በመታጠፊያው ላይ ያለው አሮጌ ወፍጮም ከብዙ ዓመታት በኋላ ለመጀመሪያ ጊዜ ጸጥ ብሎ ቆመ። በመንደሩ ውስጥ ማንም ስለዚህ ጉዳይ ብዙ አላሰበም። ልጆቹ በድንጋዮቹ ላይ ተሻግረው የአትክልት ቦታው ወዳለበት "
    "ወደ ሌላኛው ዳርቻ ሄዱ፣ እና ኪሶቻቸው በፍራፍሬ ተሞልተው ማታ ዘግይተው ወደ ቤት ተመለሱ።",
    "ka": "მთელი ზაფხული მდინარეში წყალი დაბლა იდგა და მოსახვევთან მდგარი ძველი წისქვილი მრავალი წლის შემდეგ პირველად დუმდა. სოფელში ეს დიდად არავის აწუხებდა. ბავშვები ქვებზე გადადიოდნენ მეორე ნაპირზე, "
    "სადაც ბაღი იყო, და გვიან ბრუნდებოდნენ სახლში, ჯიბეები კი ქლიავით ჰქონდათ სავსე.",
}
JUNK = {
    "menu": "\n".join(
        [
            "Home",
            "About us",
            "Products",
            "Contact",
            "Login",
            "Register",
            "Cart (0)",
            "News",
            "Blog",
            "Careers",
            "Press",
            "Imprint",
        ]
        * 3
    ),
    "repeats": "buy cheap watches online " * 60,
    "numbers": " ".join(str(i * 7919) for i in range(200)),
    "broken": "Th\ufffds t\ufffdxt w\ufffds d\ufffdc\ufffdd\ufffdd wr\ufffdng. " * 20,
    "lorem": "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore. "
    + PROSE["en"],
    "short": "Page not found.",
    "symbols": "### $$$ %%% &&& *** +++ ::: === ??? @@@ " * 20,
}


def _dropped(texts: list[str], codes: list[str]) -> list[str | None]:
    table = measure(texts, codes)
    table = table.append_column("id", pa.array([str(i) for i in range(len(texts))])).append_column("language", pa.array(codes))
    with duckdb.connect() as con:
        con.register("signals", table)
        rows = con.execute(load_policy("balanced").sql("signals")).fetchall()
    return [row[3] for row in rows]


def test_ordinary_prose_of_any_language_is_kept() -> None:
    """No rule drops a plain paragraph, whatever its script and however it separates words."""
    dropped = dict(zip(PROSE, _dropped(list(PROSE.values()), list(PROSE)), strict=True))
    assert {code: rule for code, rule in dropped.items() if rule} == {}


def test_long_prose_is_kept_too() -> None:
    """Several different paragraphs one below the other are as good as one."""
    text = "\n\n".join(PROSE[code] for code in ("en", "de", "fr", "es"))
    assert _dropped([text], ["en"]) == [None]


@pytest.mark.parametrize("name", JUNK)
def test_what_is_no_prose_is_dropped(name: str) -> None:
    """Menus, repetition, number lists, broken decoding, filler, scraps and symbols have a rule each."""
    assert _dropped([JUNK[name]], ["en"]) != [None]


@pytest.mark.parametrize("code", PROSE)
def test_the_language_of_the_prose_is_found(code: str) -> None:
    """Each paragraph is recognised, in the script it is written in."""
    assert detect_language(PROSE[code]).code == code
